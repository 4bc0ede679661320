"""Statistics for evaluations of language models, with uncertainty that respects shared scenarios."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from triagestats.errors import TriagestatsError

if TYPE_CHECKING:
    from triagestats.adjusted import Adjusted
    from triagestats.agreement.alpha import krippendorff_alpha
    from triagestats.agreement.concordance import kendall_w
    from triagestats.agreement.gwet import gwet_ac1, gwet_ac2
    from triagestats.agreement.icc import icc
    from triagestats.agreement.kappa import cohen_kappa, fleiss_kappa
    from triagestats.agreement.percent import (
        direction_of_disagreement,
        pabak,
        percent_agreement,
        within_levels,
    )
    from triagestats.analysis import Analysis
    from triagestats.analyze import analyze
    from triagestats.bootstraps import bootstrap, cluster_bootstrap, paired_bootstrap
    from triagestats.collect.run import collect
    from triagestats.combination import combine_pvalues
    from triagestats.contingency import chi_square, trend_test
    from triagestats.demo import demo_table
    from triagestats.equivalence import noninferiority, tost, tost_proportions
    from triagestats.estimands import AnchoringGap, Difference, Estimand, Function, Gap, Mean
    from triagestats.estimates import Estimates
    from triagestats.fisher import fisher_exact
    from triagestats.independent_difference import difference_ci
    from triagestats.locations import hodges_lehmann
    from triagestats.mcnemar_tests import mcnemar
    from triagestats.models.correlation import model_correlation
    from triagestats.models.generalisability import Generalisability
    from triagestats.models.linear import lpm
    from triagestats.models.linear_model import LinearModel
    from triagestats.models.logit import logit
    from triagestats.models.logit_model import LogitModel
    from triagestats.models.mediation import mediation
    from triagestats.models.mixed.bayes_result import BayesianMixedModel
    from triagestats.models.mixed.fit import mixed
    from triagestats.models.mixed.priors import Priors
    from triagestats.models.mixed.result import MixedModel
    from triagestats.models.sandwich import SmallSample
    from triagestats.models.scenario_level import scenario_regression
    from triagestats.models.scenario_result import ScenarioRegression
    from triagestats.models.strata import stratum_difference
    from triagestats.models.variance import variance_components
    from triagestats.models.variance_result import VarianceComponents
    from triagestats.models.wild import wild_bootstrap
    from triagestats.multiplicity import adjust
    from triagestats.paired_difference import paired_difference_ci
    from triagestats.permute import permutation_test
    from triagestats.permute_table import PermutationTests, permutation_tests
    from triagestats.proportions import proportion_ci
    from triagestats.rank_sums import mann_whitney
    from triagestats.ranking import leaderboard
    from triagestats.readers.deepeval import read_deepeval
    from triagestats.readers.every_eval_ever import read_every_eval_ever
    from triagestats.readers.healthbench import read_healthbench
    from triagestats.readers.helm import read_helm
    from triagestats.readers.inspect_logs import read_inspect
    from triagestats.readers.langsmith import read_langsmith
    from triagestats.readers.lighteval import read_lighteval
    from triagestats.readers.lm_eval import read_lm_eval
    from triagestats.readers.mlflow import read_mlflow
    from triagestats.readers.openai_evals import read_openai_evals
    from triagestats.readers.plain_tables import read_csv
    from triagestats.readers.promptfoo import read_promptfoo
    from triagestats.readers.read import read
    from triagestats.replicate.run import Replication, replicate_study
    from triagestats.results import Note, Test
    from triagestats.runs.compare import compare
    from triagestats.runs.comparison import RunComparison
    from triagestats.several_samples import kruskal
    from triagestats.sign_tests import sign_test
    from triagestats.signed_ranks import wilcoxon_signed_rank
    from triagestats.square_tables import bowker, stuart_maxwell
    from triagestats.standings import Leaderboard
    from triagestats.table import ResponseTable
    from triagestats.triage.anchoring import AnchoringNull, anchoring_null
    from triagestats.triage.board import Board
    from triagestats.triage.boards import triage_board
    from triagestats.triage.comparators import RateComparison, compare_rates
    from triagestats.triage.concentration import Concentration, concentration
    from triagestats.triage.direction import ErrorDirection, error_direction
    from triagestats.triage.factorial import Factorial, factorial
    from triagestats.triage.gaps import GapComparison, compare_gaps
    from triagestats.triage.masking import MaskingSlope, masking_slope
    from triagestats.triage.policies import TriageScore
    from triagestats.triage.printed import DropCheck, check_drop
    from triagestats.triage.reasons import ValidReasons, valid_reason
    from triagestats.triage.rerun_result import RerunComparison
    from triagestats.triage.reruns import compare_reruns
    from triagestats.triage.rule_report import Criterion, RuleReport
    from triagestats.triage.rules import Rule, RuleSet
    from triagestats.triage.severity import severe_probability, urgent_labels
    from triagestats.within_blocks import cochran_q, friedman

__all__ = [
    "Adjusted",
    "Analysis",
    "AnchoringGap",
    "AnchoringNull",
    "BayesianMixedModel",
    "Board",
    "Concentration",
    "Criterion",
    "Difference",
    "DropCheck",
    "ErrorDirection",
    "Estimand",
    "Estimates",
    "Factorial",
    "Function",
    "Gap",
    "GapComparison",
    "Generalisability",
    "Leaderboard",
    "LinearModel",
    "LogitModel",
    "MaskingSlope",
    "Mean",
    "MixedModel",
    "Note",
    "PermutationTests",
    "Priors",
    "RateComparison",
    "Replication",
    "RerunComparison",
    "ResponseTable",
    "Rule",
    "RuleReport",
    "RuleSet",
    "RunComparison",
    "ScenarioRegression",
    "SmallSample",
    "Test",
    "TriageScore",
    "TriagestatsError",
    "ValidReasons",
    "VarianceComponents",
    "__version__",
    "adjust",
    "analyze",
    "anchoring_null",
    "bootstrap",
    "bowker",
    "check_drop",
    "chi_square",
    "cluster_bootstrap",
    "cochran_q",
    "cohen_kappa",
    "collect",
    "combine_pvalues",
    "compare",
    "compare_gaps",
    "compare_rates",
    "compare_reruns",
    "concentration",
    "demo_table",
    "difference_ci",
    "direction_of_disagreement",
    "error_direction",
    "factorial",
    "fisher_exact",
    "fleiss_kappa",
    "friedman",
    "gwet_ac1",
    "gwet_ac2",
    "hodges_lehmann",
    "icc",
    "kendall_w",
    "krippendorff_alpha",
    "kruskal",
    "leaderboard",
    "logit",
    "lpm",
    "mann_whitney",
    "masking_slope",
    "mcnemar",
    "mediation",
    "mixed",
    "model_correlation",
    "noninferiority",
    "pabak",
    "paired_bootstrap",
    "paired_difference_ci",
    "percent_agreement",
    "permutation_test",
    "permutation_tests",
    "proportion_ci",
    "read",
    "read_csv",
    "read_deepeval",
    "read_every_eval_ever",
    "read_healthbench",
    "read_helm",
    "read_inspect",
    "read_langsmith",
    "read_lighteval",
    "read_lm_eval",
    "read_mlflow",
    "read_openai_evals",
    "read_promptfoo",
    "replicate_study",
    "scenario_regression",
    "severe_probability",
    "sign_test",
    "stratum_difference",
    "stuart_maxwell",
    "tost",
    "tost_proportions",
    "trend_test",
    "triage_board",
    "urgent_labels",
    "valid_reason",
    "variance_components",
    "wilcoxon_signed_rank",
    "wild_bootstrap",
    "within_levels",
]

# Each name loads its module on first use: numpy, scipy and narwhals stay out of `import triagestats`.
_HOMES = {
    "Adjusted": "adjusted",
    "Analysis": "analysis",
    "AnchoringGap": "estimands",
    "AnchoringNull": "triage.anchoring",
    "BayesianMixedModel": "models.mixed.bayes_result",
    "Board": "triage.board",
    "Concentration": "triage.concentration",
    "Criterion": "triage.rule_report",
    "Difference": "estimands",
    "DropCheck": "triage.printed",
    "ErrorDirection": "triage.direction",
    "Estimand": "estimands",
    "Estimates": "estimates",
    "Factorial": "triage.factorial",
    "Function": "estimands",
    "Gap": "estimands",
    "GapComparison": "triage.gaps",
    "Generalisability": "models.generalisability",
    "Leaderboard": "standings",
    "LinearModel": "models.linear_model",
    "LogitModel": "models.logit_model",
    "MaskingSlope": "triage.masking",
    "Mean": "estimands",
    "MixedModel": "models.mixed.result",
    "Note": "results",
    "PermutationTests": "permute_table",
    "Priors": "models.mixed.priors",
    "RateComparison": "triage.comparators",
    "Replication": "replicate.run",
    "RerunComparison": "triage.rerun_result",
    "ResponseTable": "table",
    "Rule": "triage.rules",
    "RuleReport": "triage.rule_report",
    "RuleSet": "triage.rules",
    "RunComparison": "runs.comparison",
    "ScenarioRegression": "models.scenario_result",
    "SmallSample": "models.sandwich",
    "Test": "results",
    "TriageScore": "triage.policies",
    "ValidReasons": "triage.reasons",
    "VarianceComponents": "models.variance_result",
    "adjust": "multiplicity",
    "analyze": "analyze",
    "anchoring_null": "triage.anchoring",
    "bootstrap": "bootstraps",
    "bowker": "square_tables",
    "check_drop": "triage.printed",
    "chi_square": "contingency",
    "cluster_bootstrap": "bootstraps",
    "cochran_q": "within_blocks",
    "cohen_kappa": "agreement.kappa",
    "collect": "collect.run",
    "combine_pvalues": "combination",
    "compare": "runs.compare",
    "compare_gaps": "triage.gaps",
    "compare_rates": "triage.comparators",
    "compare_reruns": "triage.reruns",
    "concentration": "triage.concentration",
    "demo_table": "demo",
    "difference_ci": "independent_difference",
    "direction_of_disagreement": "agreement.percent",
    "error_direction": "triage.direction",
    "factorial": "triage.factorial",
    "fisher_exact": "fisher",
    "fleiss_kappa": "agreement.kappa",
    "friedman": "within_blocks",
    "gwet_ac1": "agreement.gwet",
    "gwet_ac2": "agreement.gwet",
    "hodges_lehmann": "locations",
    "icc": "agreement.icc",
    "kendall_w": "agreement.concordance",
    "krippendorff_alpha": "agreement.alpha",
    "kruskal": "several_samples",
    "leaderboard": "ranking",
    "logit": "models.logit",
    "lpm": "models.linear",
    "mann_whitney": "rank_sums",
    "masking_slope": "triage.masking",
    "mcnemar": "mcnemar_tests",
    "mediation": "models.mediation",
    "mixed": "models.mixed.fit",
    "model_correlation": "models.correlation",
    "noninferiority": "equivalence",
    "pabak": "agreement.percent",
    "paired_bootstrap": "bootstraps",
    "paired_difference_ci": "paired_difference",
    "percent_agreement": "agreement.percent",
    "permutation_test": "permute",
    "permutation_tests": "permute_table",
    "proportion_ci": "proportions",
    "read": "readers.read",
    "read_csv": "readers.plain_tables",
    "read_deepeval": "readers.deepeval",
    "read_every_eval_ever": "readers.every_eval_ever",
    "read_healthbench": "readers.healthbench",
    "read_helm": "readers.helm",
    "read_inspect": "readers.inspect_logs",
    "read_langsmith": "readers.langsmith",
    "read_lighteval": "readers.lighteval",
    "read_lm_eval": "readers.lm_eval",
    "read_mlflow": "readers.mlflow",
    "read_openai_evals": "readers.openai_evals",
    "read_promptfoo": "readers.promptfoo",
    "replicate_study": "replicate.run",
    "scenario_regression": "models.scenario_level",
    "severe_probability": "triage.severity",
    "sign_test": "sign_tests",
    "stratum_difference": "models.strata",
    "stuart_maxwell": "square_tables",
    "tost": "equivalence",
    "tost_proportions": "equivalence",
    "trend_test": "contingency",
    "triage_board": "triage.boards",
    "urgent_labels": "triage.severity",
    "valid_reason": "triage.reasons",
    "variance_components": "models.variance",
    "wilcoxon_signed_rank": "signed_ranks",
    "wild_bootstrap": "models.wild",
    "within_levels": "agreement.percent",
}


class _Package(ModuleType):
    """Keeps `triagestats.analyze` the function: an import of the module of that name would replace it."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _HOMES and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("triagestats")
    if name in _HOMES:
        value = getattr(import_module(f"triagestats.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
