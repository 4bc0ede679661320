"""Agreement between raters: of judges, of annotators, of answers given twice."""
