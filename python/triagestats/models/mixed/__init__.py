"""Mixed models of response tables: by the Laplace approximation, and by Bayes."""
