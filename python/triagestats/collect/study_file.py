"""The study file: read, and checked as a whole before anything is asked."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from triagestats.collect.calls import canonical
from triagestats.collect.contract import (
    Answer,
    CallFailed,
    Condition,
    Judge,
    Message,
    Misfit,
    Scenario,
    Setting,
    Slot,
)
from triagestats.collect.judges import build_judges
from triagestats.collect.lines import line_of
from triagestats.collect.protocols.registry import build_conditions
from triagestats.collect.scenarios import read_scenarios
from triagestats.collect.study import COLUMNS, Study
from triagestats.collect.study_models import StudyFile
from triagestats.errors import ArgumentError, ArgumentTypeError, ReadError
from triagestats.labels import listed
from triagestats.roles import role_spelled

__all__ = ["read_study"]

_SHOWN: Final = 5


def read_study(source: str | Path | Mapping[str, Any]) -> Study:
    """A study from its toml file, or from what such a file would hold.

    Raises
    ------
    ReadError
        If the file cannot be read as toml.
    ArgumentError
        If it says something that cannot be used; the message names the key and its line.
    ArgumentTypeError
        If `source` is neither.
    """
    if isinstance(source, Mapping):
        return _Reader(dict(source), None, None).study(Path(), "study")
    if not isinstance(source, str | Path):
        raise ArgumentTypeError(
            "`study` must be a path to a toml file, or a mapping of what it holds; "
            f"got {type(source).__name__}"
        )
    path = Path(source)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ReadError(f"`study`: {str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ReadError(f"`study`: {str(path)!r} is not UTF-8 text; save it as UTF-8") from None
    text = text.replace("\r\n", "\n")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ReadError(f"`study`: {str(path)!r} is not toml: {error}") from None
    return _Reader(content, text, path.name).study(path.parent, path.stem)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Content of a study file, with its text where there is one, to say where something stands."""

    content: dict[str, Any]
    text: str | None
    name: str | None

    def study(self, folder: Path, name: str) -> Study:
        try:
            file = StudyFile.model_validate(self.content)
        except ValidationError as error:
            raise self._refused((), error) from None
        models = self._by_name("models", file.models)
        setting = Setting(folder, file.levels, tuple(models), file.seed)
        try:
            scenarios = read_scenarios(file.scenarios, folder=folder, levels=file.levels, seed=file.seed)
        except Misfit as error:
            raise self._error(("scenarios", *error.path), str(error)) from None
        judges: list[Judge] = []
        for number, table in enumerate(file.judges):
            judges += self._built(("judges", number), table, setting, build_judges)
        label_judges = tuple(judge.name for judge in judges if judge.reads_labels)
        setting = replace(setting, label_judges=label_judges)
        conditions: list[Condition] = []
        origin: list[int] = []  # the table that a condition came from
        for number, table in enumerate(file.conditions):
            built = self._built(("conditions", number), table, setting, build_conditions)
            conditions += built
            origin += [number] * len(built)
        study = Study(
            name=file.name or name,
            levels=file.levels,
            repetitions=file.repetitions,
            seed=file.seed,
            scenarios=scenarios.items,
            reading=scenarios.reading,
            file=None if file.scenarios.file is None else folder / file.scenarios.file,
            models=models,
            conditions=tuple(conditions),
            judges=self._by_name("judges", judges),
            limits=file.limits,
            carry=file.scenarios.carry,
            key_places={name: self._place(("models", number, "key")) for number, name in enumerate(models)},
        )
        self._check_carried(study)
        for judge_number, judge in enumerate(judges):
            self._check_model(("judges", judge_number), judge.model, study, "model")
            for step in judge.steps():
                self._check_model(("judges", judge_number), step.model, study)
        self._check_same_requests(study)
        self._check_conditions(study, origin)
        return study

    def _built(self, path: tuple[str | int, ...], table: dict[str, Any], setting: Setting, build: Any) -> Any:
        try:
            return build(table, setting)
        except ValidationError as error:
            raise self._refused(path, error) from None
        except Misfit as error:
            raise self._error((*path, *error.path), str(error)) from None

    def _by_name(self, key: str, items: Sequence[Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for number, item in enumerate(items):
            if item.name in found:
                raise self._error((key, number, "name"), f"{item.name!r} is there twice; rename one")
            found[item.name] = item
        return found

    def _check_same_requests(self, study: Study) -> None:
        """Two models or judges that send the same would share every answer, and look as if they agreed."""
        seen: dict[str, str] = {}
        for number, model in enumerate(study.models.values()):
            sent = canonical([model.base_url, model.model, model.parameters])
            if model.answers and sent in seen:
                raise self._error(
                    ("models", number),
                    f"{model.name!r} is asked exactly as {seen[sent]!r} is; drop one, or use `repetitions` "
                    "for more answers of the same model",
                )
            if model.answers:
                seen[sent] = model.name
        seen = {}
        for number, judge in enumerate(study.judges.values()):
            asked = study.models[judge.model]
            sent = canonical(
                [
                    [asked.base_url, asked.model, asked.parameters],
                    [type(judge).__name__, judge.model_dump(mode="json", exclude={"name", "model"})],
                ]
            )
            if sent in seen:
                raise self._error(
                    ("judges", number),
                    f"{judge.name!r} judges exactly as {seen[sent]!r} does, and would share every verdict; "
                    "drop one, or give it another model or other prompts",
                )
            seen[sent] = judge.name

    def _check_carried(self, study: Study) -> None:
        for number, name in enumerate(study.carry):
            if role := role_spelled(name):
                raise self._error(
                    ("scenarios", "carry", number),
                    f"{name!r} would be read as the {role} of the response table; rename the column",
                )
            if name in COLUMNS:
                raise self._error(
                    ("scenarios", "carry", number),
                    f"{name!r} is a column that the response table fills itself; rename it, or do not "
                    "carry it",
                )

    def _check_conditions(self, study: Study, origin: Sequence[int]) -> None:
        seen: set[str] = set()
        for number, condition in zip(origin, study.conditions, strict=True):
            path = ("conditions", number)
            if condition.name in seen:
                raise self._error((*path, "name"), f"{condition.name!r} is there twice; rename one")
            seen.add(condition.name)
            for name in condition.models or ():
                self._check_model(path, name, study, "models")
            for name in condition.judges or ():
                if name not in study.judges:
                    raise self._error(
                        (*path, "judges"), f"names {name!r}; the judges are {listed(study.judges)}"
                    )
            if not study.models_of(condition):
                raise self._error((*path, "models"), "no model answers; give one without `answers = false`")
            self._check_scenarios(path, condition, study)

    def _check_scenarios(self, path: tuple[str | int, ...], condition: Condition, study: Study) -> None:
        """Gold, templates and what the protocol needs, for every scenario, before any call."""
        without = [scenario.id for scenario in study.scenarios if scenario.gold is None]
        if condition.scored and without:
            raise self._error(
                path,
                f"{condition.name!r} is scored, and {len(without):,} of the {len(study.scenarios):,} "
                f"scenarios "
                f"lack a gold label, such as {listed(without[:_SHOWN])}; complete the column `gold`, or "
                f"set `scored = false`",
            )
        self._check_slots(path, condition.protocol.slots(), study)
        for judge in study.judges_of(condition):
            self._check_slots(("judges", list(study.judges).index(judge.name)), judge.slots(), study)
        for scenario in study.scenarios:
            try:
                condition.protocol.check(scenario)
            except Misfit as error:
                said = f"{error} (scenario {scenario.id!r})"
                raise self._error((*path, *error.path), said) from None
            for step in condition.protocol.steps(scenario):
                self._check_model(path, step.model, study)
            self._check_first_prompt(path, condition, scenario)

    def _check_first_prompt(
        self, path: tuple[str | int, ...], condition: Condition, scenario: Scenario
    ) -> None:
        """What a template does with values, such as to add to a text, is seen by doing it."""
        started = condition.protocol.run(scenario, _not_asked)
        try:
            with suppress(CallFailed, StopIteration):  # the first call ends it
                started.send(None)
        except ArgumentError as error:
            raise self._error(path, f"{error} (scenario {scenario.id!r})") from None
        finally:
            started.close()

    def _check_slots(self, path: tuple[str | int, ...], slots: Mapping[str, Slot], study: Study) -> None:
        for key, slot in slots.items():
            needed = slot.template.names - slot.provides
            for scenario in study.scenarios:
                absent = sorted(needed - scenario.fields.keys())
                if absent:
                    origin = f" ({slot.template.origin})" if slot.template.origin else ""
                    known = sorted(slot.provides | scenario.fields.keys())
                    raise self._error(
                        (*path, *key.split(".")),
                        f"the template{origin} uses {absent[0]!r}, which is not defined for scenario "
                        f"{scenario.id!r}; it may use {listed(known)}",
                    )

    def _check_model(
        self, path: tuple[str | int, ...], name: str | None, study: Study, key: str | None = None
    ) -> None:
        if name is not None and name not in study.models:
            raise self._error(
                (*path, key) if key else path,
                f"names the unknown model {name!r}; the models are {listed(study.models)}",
            )

    def _refused(self, path: tuple[str | int, ...], error: ValidationError) -> ArgumentError:
        """The first thing that is wrong, and how many more there are."""
        found = error.errors(include_url=False, include_input=False, include_context=False)
        first = found[0]
        place = [
            part for part in first["loc"] if not (isinstance(part, str) and part.startswith("function-"))
        ]
        message = first["msg"].removeprefix("Value error, ")
        known = {
            "extra_forbidden": "is no key of this table",
            "missing": "is missing",
        }
        message = known.get(first["type"], message)
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return self._error((*path, *place), message + more)

    def _error(self, path: Sequence[str | int], message: str) -> ArgumentError:
        return ArgumentError(f"{self._place(path)}: {message}")

    def _place(self, path: Sequence[str | int]) -> str:
        """A key, with the line on which it stands."""
        line = None if self.text is None else line_of(self.text, path)
        where = f" ({self.name}, line {line:,})" if line else f" ({self.name})" if self.name else ""
        return f"`{_dotted(path)}`{where}"


async def _not_asked(messages: Sequence[Message], **_: Any) -> Answer:  # noqa: ARG001
    """Stands for a model where nothing is asked yet."""
    raise CallFailed("not asked")


def _dotted(path: Sequence[str | int]) -> str:
    """A path as it is written: `models[1].retries`; entries are counted from 1."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "study"
