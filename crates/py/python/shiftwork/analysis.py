"""What is guaranteed of a task set, and which test shows it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from html import escape
from typing import Any, Literal, TypeVar

from . import _shiftwork
from .errors import InputError
from .overheads import OverheadSource, resolve
from .taskset import AffinityKind, TaskSet

__all__ = [
    "Admission",
    "AffinityLoss",
    "Analysis",
    "Answer",
    "AsWritten",
    "Assigned",
    "Assignment",
    "Bottleneck",
    "Bounds",
    "Change",
    "Charged",
    "Criterion",
    "Feasibility",
    "Latest",
    "Outcome",
    "PolicyAnswer",
    "Releases",
    "Remedies",
    "ResponseBound",
    "Scale",
    "Substitute",
    "Verdict",
    "Widening",
    "analyze",
]

#: ``hard``: all deadlines are met; ``soft``: tardiness is bounded.
Criterion = Literal["hard", "soft"]
#: ``sporadic``: any releases of each task that are a period or more apart; ``as-written``: those of the task set.
Releases = Literal["sporadic", "as-written"]
#: ``unknown`` is no "no": nothing that was asked decides.
Schedulability = Literal["schedulable", "unschedulable", "unknown"]
#: Which overheads are taken into account; ``None``: none.
OverheadUse = Literal["worst", "average"] | None


@dataclass(frozen=True, slots=True)
class Feasibility:
    """Whether any scheduler meets all deadlines."""

    verdict: Literal["yes", "no", "unknown"]
    #: The test that says so.
    by: str
    #: The tasks that need more than the CPUs provide, as text; ``None`` unless the verdict is ``no``.
    witness: str | None


@dataclass(frozen=True, slots=True)
class Admission:
    """What admission says, the reserve included."""

    policy: str
    verdict: Literal["admitted", "refused"]
    #: ``none`` exactly if the verdict is ``refused``.
    guarantee: Literal["hard", "bounded-tardiness", "share", "none"]
    #: For people.
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one test found."""

    test: str
    verdict: Literal["pass", "fail", "not-applicable", "step-limit"]


@dataclass(frozen=True, slots=True)
class Charged:
    """What a task is once overheads are charged to it."""

    name: str
    #: ``None``, as the next two, if nothing can stand for the task.
    cost_ns: int | None
    period_ns: int | None
    deadline_ns: int | None
    #: Why the task cannot meet its deadlines then; ``None`` if nothing is in the way.
    obstacle: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of one criterion under one policy."""

    policy: str
    criterion: Criterion
    verdict: Schedulability
    #: The tests that decide; ``feasibility`` if the demand does not fit, ``simulation`` if a simulated job is late.
    by: tuple[str, ...]
    #: Of an unschedulable set: what proves it, for people.
    witness: str | None
    #: Why the policy does not take the task set; ``None`` if it does.
    refusal: str | None
    #: Every test that speaks of the policy and the criterion.
    tests: tuple[Outcome, ...]
    overheads: OverheadUse
    #: What tests are asked about with these overheads; ``None`` without.
    inflated: tuple[Charged, ...] | None


@dataclass(frozen=True, slots=True)
class ResponseBound:
    """What is shown of one task."""

    name: str
    #: No job finishes later after its deadline.
    tardiness_ns: int
    #: No job takes longer from its release.
    response_ns: int
    #: What is left to the deadline at least.
    slack_ns: int
    #: The test that shows it; ``None`` in the list of one test.
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds on response times under one policy, those of one test or the best of all."""

    policy: str
    overheads: OverheadUse
    #: The tasks of which something is shown.
    tasks: tuple[ResponseBound, ...]
    #: The test; ``None``: the best of all.
    test: str | None = None


@dataclass(frozen=True, slots=True)
class AsWritten:
    """Whether all deadlines are met if tasks release their jobs as the task set says."""

    policy: str
    verdict: Schedulability
    #: The tests of sporadic tasks that show it, ``feasibility``, or ``simulation``.
    by: tuple[str, ...]
    #: The simulation that decides covers the time from zero to there; ``None`` if none does.
    until_ns: int | None
    #: Which deadline is missed, or why nothing decides, for people; ``None`` if all deadlines are met.
    reason: str | None


@dataclass(frozen=True, slots=True)
class Latest:
    """The largest bound on tardiness, which is zero where all deadlines are met."""

    task: str
    tardiness_ns: int


@dataclass(frozen=True, slots=True)
class PolicyAnswer:
    """The answer for one policy."""

    policy: str
    #: By the criterion and the releases of the answer.
    verdict: Schedulability
    #: The tests that decide.
    by: tuple[str, ...]
    #: Whether tardiness is bounded, whatever the criterion.
    tardiness_bounded: Schedulability
    #: The task that may be latest; ``None`` if there is no number.
    latest: Latest | None


@dataclass(frozen=True, slots=True)
class Substitute:
    """A policy that meets the criterion with the very task set."""

    policy: str
    #: What admission says under it, which keeps the reserve free.
    admission: Literal["admitted", "refused"]


@dataclass(frozen=True, slots=True)
class Assigned:
    """The affinity that is proposed for one task, as a list of CPUs."""

    name: str
    affinity: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """Affinities that are proposed."""

    policy: str
    #: What the policy promises with them; ``None`` if none were found.
    guarantee: Literal["hard", "bounded-tardiness"] | None
    #: Whether some task gets CPUs that its file does not give it.
    wider: bool
    #: Empty if none were found.
    tasks: tuple[Assigned, ...]


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Tasks that may run only on these CPUs and use them up."""

    tasks: tuple[str, ...]
    #: A list of CPUs.
    cpus: str


@dataclass(frozen=True, slots=True)
class Widening:
    """One CPU more for some tasks."""

    tasks: tuple[str, ...]
    cpu: int
    #: The largest factor on all costs with which they fit then.
    factor: Fraction


@dataclass(frozen=True, slots=True)
class AffinityLoss:
    """By how much all costs could grow with the affinities of the task set and without.

    Beside the reserve, and under any policy.
    """

    #: The largest factor on all costs with which the utilizations fit.
    factor: Fraction
    #: The same if every task could use every CPU.
    factor_without: Fraction
    #: ``None`` if affinities take nothing.
    bottleneck: Bottleneck | None
    #: The best change for one task, then that for all tasks with one affinity if it is
    #: better; empty if none helps, or none was found.
    changes: tuple[Widening, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What in the task set would have to change for one policy."""

    policy: str
    #: Affinities with which the policy meets the criterion; ``None`` if none were found.
    assignment: Assignment | None
    #: The tasks in an order of fixed priorities with which it does, the most urgent first;
    #: ``None`` if none was found, under policies by other orders, and for ``soft``.
    priorities: tuple[str, ...] | None
    #: The largest factor on all costs with which it does; ``None`` if none of a tenth or
    #: more was found, and with overheads.
    factor: Fraction | None


@dataclass(frozen=True, slots=True)
class Remedies:
    """What would make the answer yes, as far as a short search finds it."""

    #: Those that are admitted come first.
    policies: tuple[Substitute, ...]
    #: One for each policy that is asked about and does not meet the criterion.
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the policies that are asked about meet the criterion."""

    #: Empty if none is named: then any will do.
    policies: tuple[str, ...]
    criterion: Criterion
    releases: Releases
    verdict: Schedulability
    #: The answer for each of ``policies``.
    by_policy: tuple[PolicyAnswer, ...]
    #: ``None`` if the answer is yes, or if they were not asked for.
    remedies: Remedies | None


@dataclass(frozen=True, slots=True)
class Scale:
    """By how much all costs may grow under one policy."""

    policy: str
    #: What stays so.
    criterion: Criterion
    #: To a millionth, or exact; ``None`` if it is not so with any factor.
    factor: Fraction | None


@dataclass(frozen=True)
class Analysis:
    """Everything that is known of a task set."""

    #: Of the task set.
    name: str
    cpus: int
    utilization: Fraction
    affinity_kind: AffinityKind
    #: What the overheads are called that are taken into account; ``None``: scheduling is free.
    overheads: str | None
    feasible: Feasibility
    admission: Admission
    #: Two for each policy, hard and soft.
    verdicts: tuple[Verdict, ...]
    #: One entry for each policy and test that shows some.
    bounds: tuple[Bounds, ...]
    #: For each policy the least of all bounds.
    best: tuple[Bounds, ...]
    #: For each policy what is known if tasks release their jobs as the task set says.
    as_written: tuple[AsWritten, ...]
    answer: Answer
    #: What the task set says and no test takes into account, for people.
    left_out: tuple[str, ...]
    #: If asked for.
    scale: tuple[Scale, ...] | None
    #: If asked for.
    assignment: Assignment | None
    #: If an assignment is asked for and there are tasks.
    affinity_loss: AffinityLoss | None
    _json: dict[str, Any] = field(repr=False, compare=False)

    def verdict(self, policy: str, criterion: Criterion = "hard") -> Verdict:
        """What is known of this policy. Its name may be in any case.

        Raises:
            KeyError: The policy was not looked at.
        """
        for verdict in self.verdicts:
            if (verdict.policy.lower(), verdict.criterion) == (policy.lower(), criterion):
                return verdict
        raise KeyError(policy)

    def bound(self, policy: str, task: str) -> ResponseBound | None:
        """The best bounds of this task under this policy; ``None`` if nothing is known.

        Raises:
            KeyError: The policy was not looked at.
        """
        for best in self.best:
            if best.policy.lower() == policy.lower():
                return next((bound for bound in best.tasks if bound.name == task), None)
        raise KeyError(policy)

    def to_dict(self) -> dict[str, Any]:
        """The same under the keys of ``shiftwork analyze --json``."""
        return json.loads(json.dumps(self._json))  # type: ignore[no-any-return]

    def _repr_html_(self) -> str:
        head = "<th>policy</th><th>all deadlines met</th><th>tardiness bounded</th>"
        pairs = zip(self.verdicts[::2], self.verdicts[1::2], strict=True)
        rows = "".join(
            f"<tr><td>{escape(hard.policy)}</td><td>{_words(hard)}</td><td>{_words(soft)}</td></tr>"
            for hard, soft in pairs
        )
        title = f"{escape(self.name) or 'task set'}: feasible {self.feasible.verdict}, by {self.feasible.by}"
        return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def analyze(
    task_set: TaskSet,
    policies: str | Iterable[str] | None = None,
    *,
    criterion: Criterion = "hard",
    releases: Releases = "sporadic",
    overheads: OverheadSource = None,
    max_steps: int = 20_000_000,
    scale: bool = False,
    assign: bool = False,
    remedies: bool = False,
) -> Analysis:
    """Says what is guaranteed of a task set, under every policy, and which test shows it.

    >>> import shiftwork as sw
    >>> rover = sw.TaskSet(
    ...     cpus=2,
    ...     tasks=[
    ...         sw.Task("control", cost="2ms", period="10ms", affinity="0"),
    ...         sw.Task("vision", cost="25ms", period="40ms"),
    ...     ],
    ... )
    >>> found = sw.analyze(rover, "strong-edf")
    >>> found.verdict("strong-edf").verdict, found.verdict("strong-edf").by
    ('schedulable', ('nested-density',))
    >>> found.bound("strong-edf", "control")
    ResponseBound(name='control', tardiness_ns=0, response_ns=2000000, slack_ns=8000000, by='reduction')

    Ctrl-C is heard at once; the tests that were begun then end unseen, at ``max_steps`` at the latest.

    Args:
        task_set: The tasks.
        policies: The policies to look at; default: all, and the task set's own is the one that counts.
        criterion: What is asked of them: ``hard``, that all deadlines are met, or ``soft``, that tardiness is bounded.
        releases: For which releases that is asked: ``sporadic``, any that are a period or more apart, or ``as-written``,
            those of the task set, every period from the offset on.
        overheads: What scheduling costs; default: the file that the task set names, if any.
        max_steps: How many steps each test may take for each policy. Counted, not timed, so that the answer is
            the same on every machine.
        scale: Whether to find the largest factor on all costs with which the criterion is met.
        assign: Whether to propose affinities with which it is, and to find what those of the task set cost.
        remedies: Whether to search for policies, affinities and costs with which it is, where the answer is not yes.

    Raises:
        PolicyError: There is no such policy, or no test speaks of it.
        InputError: An argument is refused.
    """
    names = [policies] if isinstance(policies, str) else list(policies or ())
    if not 0 <= max_steps < 2**64:
        raise InputError(f"`max_steps` is {max_steps}; write 0 to {2**64 - 1}")
    text = _shiftwork.analyze(
        task_set._core,
        names,
        criterion=criterion,
        releases=releases,
        max_steps=max_steps,
        scale=scale,
        assign=assign,
        remedies=remedies,
        overheads=resolve(task_set, overheads),
    )
    return _analysis(json.loads(text))


_T = TypeVar("_T")


def _record(kind: type[_T], table: Mapping[str, Any], **changed: object) -> _T:
    """The record of these keys; lists become tuples, and keys that it does not have are left out."""
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    kept = {key: tuple(item) if isinstance(item, list) else item for key, item in table.items() if key in known}
    return kind(**{**kept, **changed})


def _records(kind: type[_T], tables: Iterable[Mapping[str, Any]]) -> tuple[_T, ...]:
    return tuple(_record(kind, table) for table in tables)


def _analysis(found: dict[str, Any]) -> Analysis:
    scale, assignment = found.get("scale"), found.get("assignment")
    loss = found.get("affinity_loss")
    return _record(
        Analysis,
        found,
        utilization=Fraction(found["utilization"]),
        feasible=_record(Feasibility, found["feasible"]),
        admission=_record(Admission, found["admission"]),
        verdicts=tuple(map(_verdict, found["verdicts"])),
        bounds=tuple(map(_bounds, found["bounds"])),
        best=tuple(map(_bounds, found["best"])),
        as_written=_records(AsWritten, found["as_written"]),
        answer=_answer(found["answer"]),
        scale=None if scale is None else tuple(map(_scale, scale)),
        assignment=None if assignment is None else _assignment(assignment),
        affinity_loss=None if loss is None else _affinity_loss(loss),
        _json=found,
    )


def _verdict(found: Mapping[str, Any]) -> Verdict:
    inflated = found["inflated"]
    return _record(
        Verdict,
        found,
        tests=_records(Outcome, found["tests"]),
        inflated=None if inflated is None else _records(Charged, inflated),
    )


def _bounds(found: Mapping[str, Any]) -> Bounds:
    return _record(Bounds, found, tasks=_records(ResponseBound, found["tasks"]))


def _answer(found: Mapping[str, Any]) -> Answer:
    remedies = found["remedies"]
    return _record(
        Answer,
        found,
        by_policy=tuple(map(_policy_answer, found["by_policy"])),
        remedies=None if remedies is None else _remedies(remedies),
    )


def _policy_answer(found: Mapping[str, Any]) -> PolicyAnswer:
    latest = found["latest"]
    return _record(PolicyAnswer, found, latest=None if latest is None else _record(Latest, latest))


def _remedies(found: Mapping[str, Any]) -> Remedies:
    return Remedies(
        policies=_records(Substitute, found["policies"]),
        changes=tuple(map(_change, found["changes"])),
    )


def _change(found: Mapping[str, Any]) -> Change:
    assignment, factor = found["assignment"], found["factor"]
    return _record(
        Change,
        found,
        assignment=None if assignment is None else _assignment(assignment),
        factor=None if factor is None else Fraction(factor),
    )


def _scale(found: Mapping[str, Any]) -> Scale:
    factor = found["factor"]
    return _record(Scale, found, factor=None if factor is None else Fraction(factor))


def _assignment(found: Mapping[str, Any]) -> Assignment:
    return _record(Assignment, found, tasks=_records(Assigned, found["tasks"]))


def _affinity_loss(found: Mapping[str, Any]) -> AffinityLoss:
    bottleneck = found["bottleneck"]
    return _record(
        AffinityLoss,
        found,
        factor=Fraction(found["factor"]),
        factor_without=Fraction(found["factor_without"]),
        bottleneck=None if bottleneck is None else _record(Bottleneck, bottleneck),
        changes=tuple(_record(Widening, one, factor=Fraction(one["factor"])) for one in found["changes"]),
    )


_YES_NO = {"schedulable": "yes", "unschedulable": "no", "unknown": "unknown"}


def _words(verdict: Verdict) -> str:
    if verdict.refusal is not None:
        return "not for this set"
    by = f", by {', '.join(verdict.by)}" if verdict.by else ""
    return escape(_YES_NO[verdict.verdict] + by)
