"""The order of the modules: each imports only from its left, and a few may do what others may not."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

# From left to right; modules in one tuple are one family and may import each other. A new module gets its
# place here.
ORDER: list[str | tuple[str, ...]] = [
    "errors",
    "schema",
    "results",
    "arguments",
    "labels",
    "source",
    "json_lines",
    "files",
    "ingest",
    "roles",
    "canonical",
    "gold",
    "scoring",
    "judgments",
    "table_steps",
    "table",
    "collect.templates",
    "collect.contract",
    "collect.answer_text",
    "collect.letters",
    "collect.dispositions",
    "collect.json_answers",
    "collect.feature_patterns",
    "collect.features",
    "collect.parsers",
    "collect.protocols",
    "collect.protocols.common",
    "collect.protocols.yes_no",
    "collect.protocols.prompted",
    "collect.protocols.wording_output",
    "collect.protocols.masking",
    "collect.protocols.styles",
    "collect.protocols.two_step",
    "collect.protocols.free_response",
    "collect.protocols.rewriting",
    "collect.protocols.script",
    "collect.protocols.conversation",
    "collect.protocols.registry",
    "collect.judging",
    "collect.judge_scores",
    "collect.judges",
    "collect.sheets",
    "collect.calls",
    "collect.lines",
    "collect.study_models",
    "collect.scenarios",
    "collect.study",
    "collect.study_file",
    "collect.store",
    "collect.changes",
    "collect.plan",
    "collect.asking",
    "collect.client",
    "collect.meter",
    "collect.runner",
    "collect.rows",
    "collect.rereading",
    "collect.output",
    "collect.loops",
    "collect.session",
    "collect.run",
    "collect",
    "collect.command",
    ("_simulate_truth", "_simulate_design", "_simulate_draw"),
    ("simulate", "_demo"),
    "demo",
    "layout",
    "design",
    "tallies",
    "matching",
    "totals",
    "key_sums",
    "estimands",
    "blocks",
    "plan",
    "tolerances",
    "lattice",
    "_native",
    "schemes",
    "progress",
    "resample",
    "studentise",
    "intervals",
    "extremes",
    "permutation",
    "subsets",
    "flipped",
    "vectors",
    "defaults",
    "permute_rows",
    "permute_table",
    "permute",
    "partitions",
    "columns",
    "pairs",
    "counts",
    "verdicts",
    "evidence",
    "inference",
    "estimates",
    "samples",
    "array_bootstrap",
    "table_bootstrap",
    "bootstraps",
    "score_intervals",
    "binomial_intervals",
    "clustered_rates",
    "margin_tests",
    "binary_pairs",
    "clustered_pairs",
    "proportions",
    "independent_difference",
    "mcnemar_tests",
    "paired_difference",
    "midranks",
    "walsh",
    "sign_sums",
    "differences",
    "two_groups",
    "sign_flips",
    "locations",
    "sign_tests",
    "signed_ranks",
    "rank_sums",
    "block_laws",
    "treatments",
    "association",
    "within_blocks",
    "several_samples",
    "crosstab",
    "label_pairs",
    "conditional_odds",
    "table_law",
    "fisher",
    "goodness",
    "contingency",
    "side_flips",
    "square_tables",
    "p_values",
    "combination",
    "step_procedures",
    "max_statistics",
    "adjusted",
    "multiplicity",
    "equivalence_sides",
    "equivalence_table",
    "equivalence_ask",
    "equivalence",
    "agreement",
    "agreement.scale",
    "agreement.sources",
    "agreement.ratings",
    "agreement.weights",
    "agreement.functions",
    "agreement.disagreement",
    "agreement.coefficients",
    "agreement.large_sample",
    "agreement.estimation",
    "agreement.kappa",
    "agreement.alpha",
    "agreement.gwet",
    "agreement.shares",
    "agreement.percent",
    "agreement.icc",
    "agreement.concordance",
    "agreement.of_table",
    "readers",
    "readers.bounded",
    "readers.archives",
    "readers.rows",
    "readers.runs",
    "readers.assemble",
    "readers.recognise",
    "readers.reading",
    "readers.items",
    "readers.claims",
    "readers.shapes",
    "readers.tables",
    "readers.inspect_logs",
    "readers.lm_eval",
    "readers.helm",
    "readers.lighteval",
    "readers.openai_evals",
    "readers.healthbench",
    "readers.promptfoo_results",
    "readers.promptfoo",
    "readers.deepeval",
    "readers.mlflow",
    "readers.langsmith",
    "readers.every_eval_ever",
    "readers.wide_csv",
    "readers.plain_tables",
    "readers.export",
    "readers.read",
    "contrast_tests",
    "contrast_rows",
    "share_differences",
    "triage",
    "triage.outcomes",
    "triage.selection",
    "triage.text",
    "triage.costs",
    "triage.confusion",
    "triage.error_families",
    "triage.direction",
    "triage.fixed_scenarios",
    "triage.concentration_counts",
    "triage.concentration_parts",
    "triage.concentration",
    "triage.rate_pairs",
    "triage.comparators",
    "triage.contrasts",
    "triage.frames",
    "triage.factors",
    "triage.effects",
    "triage.factorial_plan",
    "triage.factorial",
    "triage.voices",
    "triage.victims",
    "triage.gap_plan",
    "triage.gap_frames",
    "triage.gap_notes",
    "triage.gaps",
    "triage.anchoring_law",
    "triage.anchoring",
    "marginals",
    "beside",
    "rank_sets",
    "rank_rows",
    "standings",
    "flags",
    "joint",
    "ranked_design",
    "triage.severity",
    "triage.policies",
    "triage.board_cases",
    "triage.board_rates",
    "triage.board_ranking",
    "triage.board",
    "triage.boards",
    "triage.reasons",
    "triage.rule_text",
    "triage.rule_report",
    "triage.rules",
    "ranking",
    "triage.printed",
    "triage.run_values",
    "triage.rerun_result",
    "triage.reruns",
    "triage.masking",
    "models",
    "models.matrix",
    "models.formula_names",
    "models.formula",
    "models.design_columns",
    "models.model_data",
    "models.within",
    "models.sandwich",
    "models.leverage",
    "models.covariance",
    "models.engines",
    "models.absorbed",
    "models.contrast_regression",
    "models.linear_terms",
    "models.t_inference",
    "models.linear_model",
    "models.linear_notes",
    "models.linear",
    "models.separation",
    "models.marginal",
    "models.logit_model",
    "models.logit",
    "models.wild_scores",
    "models.wild_law",
    "models.wild",
    "models.association",
    "models.targets",
    "models.shared_noise",
    "models.correlation",
    "models.attributes",
    "models.scenario_values",
    "models.least_squares",
    "models.scenario_result",
    "models.strata_groups",
    "models.strata_permuted",
    "models.strata",
    "models.scenario_level",
    "models.eliminated",
    "models.mediation",
    "models.facets",
    "models.random_terms",
    "models.reml_leaves",
    "models.reml_sums",
    "models.reml_blocks",
    "models.reml_evaluation",
    "models.reml",
    "models.reml_profile",
    "models.mixed_fixed",
    "models.mixed_contrasts",
    "models.generalisability",
    "models.variance_result",
    "models.variance_notes",
    "models.variance",
    "models.mixed",
    "models.mixed.matrix",
    "models.mixed.naming",
    "models.mixed.outcomes",
    "models.mixed.random_parts",
    "models.mixed.read_notes",
    "models.mixed.read",
    "models.mixed.profiles",
    "models.mixed.averages",
    "models.mixed.deviations",
    "models.mixed.laplace",
    "models.mixed.wald",
    "models.mixed.estimate_rows",
    "models.mixed.shown",
    "models.mixed.nested_models",
    "models.mixed.result",
    "models.mixed.laplace_notes",
    "models.mixed.priors",
    "models.mixed.draws",
    "models.mixed.thinning",
    "models.mixed.extras",
    "models.mixed.convergence",
    "models.mixed.psis",
    "models.mixed.integrals",
    "models.mixed.posterior_averages",
    "models.mixed.quantities",
    "models.mixed.likelihood",
    "models.mixed.prior_scales",
    "models.mixed.diagnostics",
    "models.mixed.held_out",
    "models.mixed.loo",
    "models.mixed.checks",
    "models.mixed.prior_sensitivity",
    "models.mixed.levels",
    "models.mixed.pymc_model",
    "models.mixed.pymc_sampler",
    "models.mixed.inference_data",
    "models.mixed.bayes_rows",
    "models.mixed.bayes_result",
    "models.mixed.sweeps",
    "models.mixed.pilot",
    "models.mixed.native_plan",
    "models.mixed.native_draws",
    "models.mixed.native_sampler",
    "models.mixed.progress",
    "models.mixed.bayes_fit",
    "models.mixed.fit",
    "models.mixed.of_table",
    "independent",
    "readings",
    "rate_effects",
    "missingness",
    "describe",
    "analysis",
    "engine",
    "engine.held",
    "engine.identifiers",
    "engine.rows",
    "engine.labels",
    "engine.scores",
    "engine.table",
    "engine.stages",
    "engine.gather",
    "engine.sums",
    "engine.layout",
    "engine.repeated",
    "engine.analysis",
    "analyze",
    "report",
    "report.labels",
    "report.grid",
    "report.agreement",
    "report.errors",
    "report.mixed",
    "report.sections",
    "report.text",
    "replicate",
    "replicate.leaves",
    "replicate.montecarlo",
    "replicate.published",
    "replicate.entry",
    "replicate.tables",
    "replicate.fits",
    "replicate.clusters",
    "replicate.counting",
    "replicate.differences",
    "replicate.study1_tables",
    "replicate.study1",
    "replicate.study2_tables",
    "replicate.study2_blocks",
    "replicate.study2",
    "replicate.ratings",
    "replicate.voices",
    "replicate.voice_blocks",
    "replicate.narrativeshield",
    "replicate.boards",
    "replicate.board_blocks",
    "replicate.medsafe",
    "replicate.text",
    "replicate.run",
    "runs",
    "runs.sides",
    "runs.together",
    "runs.alignment",
    "runs.unvarying",
    "runs.gate",
    "runs.planning",
    "runs.unpaired",
    "runs.comparison",
    "runs.printed",
    "runs.compare",
    "cli_messages",
    "cli_output",
    "cli_options",
    "runs.command",
    "cli",
]
# Imports from the right that are meant, made where they are used.
FROM_THE_RIGHT = {
    ("analysis", "report.text"),  # an analysis prints itself; reports read analyses
    ("runs.comparison", "runs.printed"),  # and so does a comparison of runs
}
RUST_BOUND = {
    "schemes",
    "intervals",
    "permutation",
    "subsets",
    "models.wild",
    "models.mixed.laplace",
    "models.mixed.native_plan",
}

RANK = {
    name: rank for rank, entry in enumerate(ORDER) for name in ((entry,) if isinstance(entry, str) else entry)
}
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
NUMERIC = {"math", "numpy", "polars", "scipy", "statistics"}


def package() -> Path:
    spec = importlib.util.find_spec("triagestats")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def sources() -> dict[str, str]:
    """Return the source of every module by its name within the package."""
    found = {}
    for path in package().rglob("*.py"):
        parts = path.relative_to(package()).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path.read_text(encoding="utf-8")
    return found


SOURCES = sources()


def running(node: ast.AST) -> Iterator[ast.AST]:
    """Walk over the code that runs: imports for type checkers do not."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for other in child.orelse:
                yield other
                yield from running(other)
            continue
        yield child
        yield from running(child)


def imports(source: str) -> set[str]:
    """Return the modules of the package that a source imports, anywhere in it."""
    found = set()
    for node in running(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports hide their target"
            module = node.module or ""
            inside = {f"{module}.{alias.name}" for alias in node.names}
            modules = {name for name in inside if name.removeprefix("triagestats.") in RANK}
            found |= modules or {module}
    own = {name.removeprefix("triagestats.") for name in found if name.startswith("triagestats.")}
    return own & set(RANK) | {name for name in own if name not in RANK}


def arithmetic(source: str) -> list[str]:
    """Return the places of a source that compute with numbers."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ARITHMETIC):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            found += [f"line {node.lineno}: import {n}" for n in names if n.partition(".")[0] in NUMERIC]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("sum", "min", "max", "abs", "round"):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def test_every_module_has_a_place_in_the_order() -> None:
    assert set(SOURCES) - {""} == set(RANK) - {"_native"}


@pytest.mark.parametrize("name", sorted(set(SOURCES) - {""}))
def test_imports_come_from_the_left(name: str) -> None:
    wrong = {
        other
        for other in imports(SOURCES[name])
        if RANK.get(other, 0) > RANK.get(name, 0) and (name, other) not in FROM_THE_RIGHT
    }
    assert not wrong, f"{name} imports {sorted(wrong)}, which stand to its right"


def test_the_exceptions_are_used() -> None:
    assert all(other in imports(SOURCES[name]) for name, other in FROM_THE_RIGHT)


def test_only_resampling_knows_the_native_module() -> None:
    assert {name for name, source in SOURCES.items() if "_native" in imports(source)} == RUST_BOUND


def test_analyze_does_no_arithmetic() -> None:
    assert arithmetic(SOURCES["analyze"]) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from triagestats import cli", {"cli"}),
        ("import triagestats.analyze as a", {"analyze"}),
        ("from triagestats.report.text import summary_text", {"report.text"}),
        ("from triagestats.report import text", {"report.text"}),
        ("def f():\n    from triagestats.errors import DataError", {"errors"}),
        (
            "if TYPE_CHECKING:\n    from triagestats import cli\nelse:\n    import triagestats.table",
            {"table"},
        ),
        ("import numpy", set()),
    ],
)
def test_imports_are_found_where_they_stand(source: str, expected: set[str]) -> None:
    assert imports(source) == expected


@pytest.mark.parametrize(
    "source", ["a + b", "a -= 1", "x = y @ z", "sum(values)", "import math", "from numpy import mean"]
)
def test_arithmetic_is_found(source: str) -> None:
    assert arithmetic(source)


@pytest.mark.parametrize("source", ["a: int | None = None", "{**a} | b", "n > 3", "'a' if b else 'c'"])
def test_wiring_is_no_arithmetic(source: str) -> None:
    assert arithmetic(source) == []
