"""What is guaranteed: the same as the command line says, as objects."""

import json
import pickle
from fractions import Fraction
from pathlib import Path

import pytest

import shiftwork as sw


def test_verdicts_are_found_by_policy_and_criterion(rover: sw.TaskSet) -> None:
    found = sw.analyze(rover)
    assert (found.name, found.cpus, found.utilization) == ("rover", 2, Fraction(41, 40))
    assert found.affinity_kind == "bi-level"
    assert found.feasible.verdict == "yes"
    hard = found.verdict("HPA-EDF")
    assert (hard.verdict, hard.criterion, hard.refusal) == ("schedulable", "hard", None)
    assert set(hard.by) <= {test.test for test in hard.tests if test.verdict == "pass"}
    refused = found.verdict("g-edf", "soft")
    assert refused.refusal is not None and "g-edf" in refused.refusal
    assert found.answer.policies == ()
    with pytest.raises(KeyError):
        found.verdict("nonsense")


def test_bounds_are_never_exceeded(rover: sw.TaskSet) -> None:
    found = sw.analyze(rover)
    checked = 0
    for best in found.best:
        if best.policy.startswith(("dl-", "c-", "g-", "np-")):
            continue
        try:
            run = sw.simulate(rover, best.policy, "2s")
        except sw.PolicyError:
            assert best.tasks == ()
            continue
        for bound in best.tasks:
            seen = run.task(bound.name).response_ns
            assert seen is not None and seen.max <= bound.response_ns, (best.policy, bound)
            checked += 1
    assert checked >= 10


def test_one_policy_or_several_may_be_asked_about(rover: sw.TaskSet) -> None:
    assert {verdict.policy for verdict in sw.analyze(rover, "strong-edf").verdicts} == {"strong-edf"}
    both = sw.analyze(rover, ["p-edf", "P-EDF", "weak-fp"])
    assert [verdict.policy for verdict in both.verdicts[::2]] == ["p-edf", "weak-fp"]
    assert both.answer.policies == ("p-edf", "weak-fp")
    assert both.admission.policy == "p-edf"


def test_a_set_that_cannot_be_scheduled_comes_with_a_proof() -> None:
    full = sw.TaskSet([sw.Task(name, "3ms", "4ms", affinity="0") for name in "ab"], cpus=2)
    found = sw.analyze(full, "strong-edf", criterion="hard")
    assert (found.feasible.verdict, found.answer.verdict) == ("no", "unschedulable")
    assert found.feasible.witness is not None and "`a`" in found.feasible.witness
    assert found.answer.criterion == "hard"
    assert found.admission.verdict == "refused"


def test_the_answer_is_about_deadlines_unless_asked_otherwise() -> None:
    heavy = sw.TaskSet([sw.Task(name, "2ms", "3ms") for name in "abc"], cpus=2)
    for policy in ("g-edf", "strong-edf", "dl-linux"):
        hard = sw.analyze(heavy, policy).answer
        assert (hard.criterion, hard.verdict) == ("hard", "unschedulable")
    hard, soft = (sw.analyze(heavy, "strong-edf", criterion=one).answer for one in ("hard", "soft"))
    assert soft.verdict == "schedulable"
    for answer in (hard, soft):
        (of_policy,) = answer.by_policy
        assert of_policy.tardiness_bounded == "schedulable"
        assert of_policy.latest is not None and of_policy.latest.tardiness_ns == 2_000_000
    assert hard.remedies is None


def test_releases_of_the_set_are_a_question_of_their_own() -> None:
    apart = sw.TaskSet([sw.Task(name, "2ms", "3ms", offset=f"{at}ms") for at, name in enumerate("abc")], cpus=2)
    sporadic = sw.analyze(apart, "strong-edf")
    as_written = sw.analyze(apart, "strong-edf", releases="as-written")
    assert sporadic.as_written == as_written.as_written
    (known,) = as_written.as_written
    assert (known.policy, known.verdict, known.by) == ("strong-edf", "schedulable", ("simulation",))
    assert (known.until_ns, known.reason) == (5_000_000, None)
    for found, releases, verdict in (
        (sporadic, "sporadic", "unschedulable"),
        (as_written, "as-written", "schedulable"),
    ):
        assert (found.answer.releases, found.answer.verdict) == (releases, verdict)
    with pytest.raises(sw.InputError, match='`releases` is "never"; write "sporadic"'):
        sw.analyze(apart, "strong-edf", releases="never")  # type: ignore[arg-type]


def test_remedies_make_the_answer_yes() -> None:
    def three(cost_ns: int) -> sw.TaskSet:
        return sw.TaskSet([sw.Task(name, cost_ns=cost_ns, period_ns=3_000_000) for name in "abc"], cpus=2)

    remedies = sw.analyze(three(2_000_000), "strong-edf", remedies=True).answer.remedies
    assert remedies is not None and remedies.policies
    for one in remedies.policies:
        found = sw.analyze(three(2_000_000), one.policy)
        assert (found.answer.verdict, found.admission.verdict) == ("schedulable", one.admission)
    (change,) = remedies.changes
    assert change.policy == "strong-edf" and change.factor == Fraction(3, 4)
    assert sw.analyze(three(1_500_000), "strong-edf", remedies=True).answer.remedies is None


def test_priorities_that_would_do_come_with_the_remedies() -> None:
    def two(first: int, second: int) -> sw.TaskSet:
        times = (("a", "2ms", "3ms", first), ("b", "4ms", "8ms", second))
        tasks = [sw.Task(name, cost, "10ms", deadline=due, priority=number) for name, cost, due, number in times]
        return sw.TaskSet(tasks, cpus=1)

    remedies = sw.analyze(two(2, 1), "g-fp", remedies=True).answer.remedies
    assert remedies is not None and remedies.changes[0].priorities == ("a", "b")
    assert sw.analyze(two(1, 2), "g-fp").answer.verdict == "schedulable"


def test_what_has_no_guarantee_is_refused() -> None:
    tasks = [sw.Task(name, "6ms", "10ms", affinity=cpus) for name, cpus in zip("abc", ("0-1", "1-2", "0,2"), strict=True)]
    admission = sw.analyze(sw.TaskSet(tasks, cpus=3), "weak-edf").admission
    assert (admission.verdict, admission.guarantee) == ("refused", "none")
    assert admission.reason.startswith("nothing is guaranteed: ")


def test_scales_and_assignments_come_on_request(rover: sw.TaskSet) -> None:
    plain = sw.analyze(rover, "p-edf")
    assert plain.scale is None and plain.assignment is None
    found = sw.analyze(rover, "p-edf", scale=True, assign=True)
    assert found.scale is not None and found.assignment is not None
    (scale,) = found.scale
    assert scale.factor is not None and scale.factor >= 1
    grown = [
        sw.Task(task.name, cost_ns=int(task.cost_ns * scale.factor), period_ns=task.period_ns, affinity=task.affinity)
        for task in rover
    ]
    assert sw.analyze(sw.TaskSet(grown, cpus=2), "p-edf").answer.verdict == "schedulable"
    assert [task.name for task in found.assignment.tasks] == ["control", "vision", "logging"]
    assert found.assignment.guarantee == "hard" and not found.assignment.wider


def test_the_loss_by_affinities_names_its_bottleneck_and_the_best_change() -> None:
    tasks = [sw.Task("a", "2ms", "4ms", affinity="0"), sw.Task("b", "3ms", "4ms", affinity="0"), sw.Task("c", "1ms", "4ms")]
    loss = sw.analyze(sw.TaskSet(tasks, cpus=2, reserve=0.0), "strong-edf", assign=True).affinity_loss
    assert loss is not None and loss.bottleneck is not None
    assert (loss.factor, loss.factor_without) == (Fraction(4, 5), Fraction(4, 3))
    assert loss.bottleneck.tasks == ("a", "b") and loss.bottleneck.cpus == "0"
    (change,) = loss.changes
    assert (change.tasks, change.cpu, change.factor) == (("b",), 1, Fraction(4, 3))


def test_overheads_are_charged(root: Path) -> None:
    medium = sw.load(root / "examples/brandenburg-2008/medium.toml")
    priced, free = sw.analyze(medium, "g-edf"), sw.analyze(medium, "g-edf", overheads="none")
    assert priced.overheads is not None and priced.overheads.endswith("niagara-2008.toml")
    assert free.overheads is None
    hard = priced.verdict("g-edf")
    assert hard.overheads == "worst" and hard.inflated is not None
    cost = hard.inflated[0].cost_ns
    assert cost is None or cost > medium[0].cost_ns
    assert free.verdict("g-edf").inflated is None


def test_the_dictionary_has_the_keys_of_the_command_line(rover: sw.TaskSet) -> None:
    found = sw.analyze(rover, "strong-edf")
    plain = found.to_dict()
    wanted = {"schema_version", "cpus", "utilization", "affinity_kind", "feasible", "admission", "verdicts", "bounds"}
    assert wanted <= plain.keys()
    assert plain["utilization"] == "41/40"
    assert json.loads(json.dumps(plain)) == plain
    assert pickle.loads(pickle.dumps(found)) == found
    assert "hpa-edf" not in found._repr_html_() and "strong-edf" in found._repr_html_()


def test_steps_are_counted_not_timed() -> None:
    hard = sw.generate(4, 12, 3.4, deadlines="constrained", seed=5)
    few = sw.analyze(hard, "g-edf", max_steps=10)
    assert "step-limit" in {test.verdict for test in few.verdict("g-edf").tests}
    assert few.to_dict() == sw.analyze(hard, "g-edf", max_steps=10).to_dict()


def test_questions_that_make_no_sense_are_refused(rover: sw.TaskSet) -> None:
    with pytest.raises(sw.PolicyError, match="nonsense"):
        sw.analyze(rover, "nonsense")
    with pytest.raises(sw.PolicyError, match="affinities cannot be proposed for"):
        sw.analyze(rover, "dl-linux", assign=True)
    with pytest.raises(sw.InputError, match="`criterion` is \"firm\""):
        sw.analyze(rover, criterion="firm")  # type: ignore[arg-type]
    with pytest.raises(sw.InputError, match="`max_steps` is -1"):
        sw.analyze(rover, max_steps=-1)


def test_suspensions_count_as_computing() -> None:
    def verdict(suspension: str) -> str:
        phases = [{"run": "1ms"}, {"sleep": suspension}]
        sleepy = sw.TaskSet([sw.Task("a", "1ms", "4ms", work={"phases": phases})], cpus=1)
        found = sw.analyze(sleepy, "p-edf")
        assert not found.left_out
        return found.verdict("p-edf").verdict

    assert (verdict("1ms"), verdict("5ms")) == ("schedulable", "unschedulable")


def test_every_policy_is_listed() -> None:
    listed = sw.policies()
    names = [policy.name for policy in listed]
    assert len(names) == len(set(names)) >= 30
    assert {"hpa-edf", "strong-fp-kernel", "dl-sp", "CEm", "pd2"} <= set(names)
    assert all(policy.summary and policy.source and policy.domain for policy in listed)
    assert {policy.order for policy in listed} == {"edf", "fp", "fl", "edzl", "llf"}
