"""What can be changed in Lua source is found where it is code, and nowhere else."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from sluicegate import functions
from tests.mutation.lua import Kind, tokens
from tests.mutation.mutants import Mutant, mutants_of


def mutants(source: str) -> tuple[Mutant, ...]:
    return mutants_of("one.lua", source, count(1))[0]


def altered(source: str) -> dict[str, str]:
    """Give the source after each mutation by its name."""
    return {mutant.mutation: mutant.altered(source) for mutant in mutants(source)}


def test_strings_and_comments_hold_nothing_to_change() -> None:
    source = """
    -- if a == b then
    --[[ if a < b
    and c ]] --[==[ not ]] a ]==]
    local x = 'if a == b' .. "it's \\" not" .. [[ a and b ]] .. [=[ ]] or ]=]
    """
    assert mutants(source) == ()


def test_the_tokens_put_together_are_the_source_without_blanks_and_comments() -> None:
    source = "local a, b = 0x1F, 1.5e-3 -- two\nreturn a..b, a ~= b, #{...}"
    text = "".join(token.text for token in tokens(source))
    assert text == "locala,b=0x1F,1.5e-3returna..b,a~=b,#{...}"
    assert [token.text for token in tokens(source) if token.kind is Kind.NUMBER] == ["0x1F", "1.5e-3"]


def test_what_is_no_lua_is_said_with_its_line() -> None:
    with pytest.raises(ValueError, match="line 2"):
        tokens("local a\nlocal b = 'open")


def test_a_condition_is_negated_and_made_to_hold_always_and_never() -> None:
    assert altered("if a then b() end") == {
        "if negated": "if not (a) then b() end",
        "if always true": "if (a) or true then b() end",
        "if always false": "if (a) and false then b() end",
    }


def test_a_loop_is_never_made_endless() -> None:
    assert set(altered("while a do b() end")) == {"while negated", "while always false"}


@pytest.mark.parametrize(
    ("operator", "others"),
    [("<", ("<=", ">=")), ("<=", ("<", ">")), (">", (">=", "<=")), (">=", (">", "<")), ("==", ("~=",)), ("~=", ("==",)),
     ("and", ("or",)), ("or", ("and",))],
)  # fmt: skip
def test_an_operator_becomes_each_of_its_neighbours(operator: str, others: tuple[str, ...]) -> None:
    assert list(altered(f"return a {operator} b").values()) == [f"return a {other} b" for other in others]


def test_not_is_dropped() -> None:
    assert altered("return not a")["`not` dropped"].split() == ["return", "a"]


@pytest.mark.parametrize(("condition", "left"), [("a == b", []), ("not a", []), ("a < b", ["`<` → `<=`"])])
def test_no_change_is_made_twice(condition: str, left: list[str]) -> None:
    others = [name for name in altered(f"if {condition} then b() end") if not name.startswith("if ")]
    assert others == left


def test_the_same_change_of_the_same_line_is_numbered_so_that_keys_are_unique() -> None:
    found = mutants("function f()\n  return a or b or c\nend\nfunction g()\n  return a or b or c\nend")
    assert [(mutant.function, mutant.mutation) for mutant in found] == [
        ("f", "`or` → `and`"), ("f", "`or` → `and` (2)"), ("g", "`or` → `and`"), ("g", "`or` → `and` (2)"),
    ]  # fmt: skip


def test_a_key_stays_when_its_line_moves() -> None:
    (before, *_), (after, *_) = mutants("if a then b() end"), mutants("\n\n  if a then b() end")
    assert before.key == after.key
    assert (before.line, after.line) == (1, 3)


def test_each_file_of_the_library_has_mutants_and_no_two_have_one_key() -> None:
    for path in Path(functions.__file__).parent.glob("*.lua"):
        found, _ = mutants_of(path.name, path.read_text(encoding="utf-8"), count(1))
        assert found
        assert len({mutant.key for mutant in found}) == len(found)
