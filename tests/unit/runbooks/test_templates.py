"""A value of a runbook names settings and can do nothing else."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbooks.context import NAMES, Context
from runbooks.templates import RESULT_MOST, TEMPLATE_MOST, TemplateRefused, render
from runbooks.values import Address, Duration, Text
from runbooks.where import Where
from sluicegate.errors import SettingsError
from sluicegate.settings import Settings, default_settings, faster

CONTEXT = Context(default_settings(), run_id="r-7")
WHERE = Where("mine.yaml", "steps[0].fix.page_every")


def with_hook(url: str) -> Settings:
    settings = default_settings()
    fix = settings.automation.fix.model_copy(update={"hook_url": url})
    return settings.model_copy(update={"automation": settings.automation.model_copy(update={"fix": fix})})


def test_a_declared_name_stands_for_the_setting() -> None:
    assert render("{{ contract.timings.canary_timeout_s }}s", CONTEXT) == "120s"
    assert render("{{ contract.ramp_percents }}", CONTEXT) == "10, 50, 100"
    assert render("{{ run.id }}/fix", CONTEXT) == "r-7/fix"


def test_a_name_that_is_not_set_is_empty() -> None:
    assert render("{{ automation.fix.hook_url }}", CONTEXT, addresses=True) == ""


def test_every_declared_name_can_be_rendered() -> None:
    for name in NAMES:
        assert "{" not in render(f"{{{{ {name} }}}}", CONTEXT, addresses=True)


def test_a_faster_profile_is_followed() -> None:
    quick = Context(faster(default_settings(), 5))
    assert Duration("{{ contract.timings.canary_timeout_s }}s").resolve(quick) == 24


def test_no_secret_is_a_declared_name() -> None:
    assert not [name for name in NAMES if "token" in name or "redis" in name]


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__ }}",
        "{{ contract.__class__ }}",
        "{{ contract.timings.__init__.__globals__ }}",
        "{{ run.id.__class__.__mro__ }}",
        "{{ 'a' * 10**8 }}",
        "{{ range(10**9) | list }}",
        "{{ run.id | upper }}",
        "{{ run['id'] }}",
        "{{ run.id.upper() }}",
        "{{ run.id ~ run.id }}",
        "{% for n in range(9) %}{{ n }}{% endfor %}",
        "{% set x = 1 %}",
        "{{ 1 }}",
        "{{ automation.token }}",
        "{{ redis_url }}",
        "{{ alert.labels.queue }}",
        "{{ contract }}",
        "{{ contract.timings }}",
        "{{ nothing.of.this }}",
        "{{ run.id",
        "{{ run.id }}{# note #}{{ self }}",
    ],
)
def test_whatever_is_not_a_declared_name_is_refused(text: str) -> None:
    with pytest.raises(TemplateRefused):
        render(text, CONTEXT)


@pytest.mark.parametrize(
    "name",
    ["automation.fix.hook_url", "automation.fix.probe_url", "automation.rollback_hook_url", "automation.urls.switch"],
)
def test_an_address_which_may_hold_a_secret_stands_only_where_it_is_shown_masked(name: str) -> None:
    text = f"{{{{ {name} }}}}"
    with pytest.raises(SettingsError, match="is an address, which may hold a secret"):
        Text.read(text, WHERE)
    assert Address.read(text, WHERE).text == text


def test_a_huge_product_is_refused_before_it_is_made() -> None:
    started = time.process_time()
    with pytest.raises(TemplateRefused):
        render("{{ 'a' * 10**8 }}", CONTEXT)
    # Making the hundred million characters takes seconds; refusing the product takes none of that.
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("text", ["a\r\nb", "a\nb", "{{ run.id }}\r\nX: y", "a\x00b", "a\u2028b", "a\x1b[31mb"])
def test_a_line_break_or_control_character_is_refused(text: str) -> None:
    with pytest.raises(TemplateRefused, match="line break"):
        render(text, CONTEXT)


def test_a_line_break_out_of_the_settings_is_refused_too() -> None:
    context = Context(with_hook("http://hook\r\nX-Evil: 1"))
    with pytest.raises(SettingsError, match="line break"):
        Address("{{ automation.fix.hook_url }}").resolve(context)


def test_braces_in_a_setting_stay_data() -> None:
    context = Context(with_hook("http://hook/{{ run.id }}"))
    assert render("{{ automation.fix.hook_url }}", context, addresses=True) == "http://hook/{{ run.id }}"


def test_a_long_template_and_a_long_result_are_refused() -> None:
    with pytest.raises(TemplateRefused, match=f"above the {TEMPLATE_MOST}"):
        render("{{ run.id }}" + "a" * TEMPLATE_MOST, CONTEXT)
    with pytest.raises(TemplateRefused, match=f"above the {RESULT_MOST}"):
        render("{{ automation.fix.hook_url }}", Context(with_hook("http://" + "a" * RESULT_MOST)), addresses=True)


def test_an_error_names_file_field_value_and_bound() -> None:
    with pytest.raises(SettingsError) as refused:
        Duration.read("{{ contract.timings.canary_timeout }}s", WHERE)
    assert str(refused.value) == (
        "mine.yaml: steps[0].fix.page_every is '{{ contract.timings.canary_timeout }}s', "
        "and 'contract.timings.canary_timeout' is not a declared name.\n"
        "Did you mean `contract.timings.canary_timeout_s`?"
    )


def test_a_unit_that_is_missing_behind_a_name_is_found_when_the_file_is_read() -> None:
    with pytest.raises(SettingsError, match="not a duration with a unit"):
        Duration.read("{{ contract.timings.canary_timeout_s }}", WHERE)


@given(st.text(alphabet="{}%# abrun.id_*'\"|()[]\r\n", max_size=60))
def test_any_text_renders_to_one_short_line_or_is_refused(text: str) -> None:
    try:
        result = render(text, CONTEXT)
    except TemplateRefused:
        return
    assert len(result) <= RESULT_MOST
    assert result.isprintable()
