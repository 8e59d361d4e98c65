"""Find the command line of the part that a word names, and run it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path

import sluicegate

PROGRAM = "sluicegate"
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


@dataclass(frozen=True)
class Word:
    """Name the module whose `app` answers a word, and say in one line what it is for."""

    module: str
    summary: str


WORDS: dict[str, Word] = {
    "queue": Word("sluicegate.cli_queue", "Open a queue, apply its contract, submit to it and look into it."),
    "gate": Word("sluicegate.cli_gate", "Show the gate, and tighten or open it as a named person."),
    "worker": Word("sluicegate.cli_worker", "Pull jobs and call the provider, within the gate and the deadlines."),
    "exporter": Word("exporter.cli", "Serve the telemetry fields to Prometheus."),
    "rules": Word("rules.cli", "Generate Prometheus rules, their tests and Alertmanager routing."),
    "runbooks": Word("runbooks.cli", "List, show, check and plan the recoveries."),
    "automation": Word("automation.cli", "Run recoveries: controller, webhook receiver, executor, and their control."),
    "dashboards": Word("dashboards.cli", "Generate the Grafana dashboards."),
    "drill": Word("drill.cli", "Prove the whole loop on real parts on this machine."),
}


def parts_folder() -> Path:
    """Return the folder that holds the parts: `_app` beside this file in a wheel, the repository in a checkout."""
    library = Path(__file__).resolve().parent
    packed = library / "_app"
    return packed if packed.is_dir() else library.parent


def overview() -> str:
    """Return the text of `sluicegate --help`: every word with its line, then an example."""
    width = max(map(len, WORDS))
    lines = [f"  {name:<{width}}  {word.summary}" for name, word in WORDS.items()]
    return "\n".join(
        [
            f"Usage: {PROGRAM} WORD [OPTIONS] …",
            "",
            "Stop admitting, drain, fix, prove and reopen a Redis-backed job queue before its deadlines are missed.",
            "",
            "Words:",
            *lines,
            "",
            "Options:",
            "  --help     Show this text; `sluicegate WORD --help` shows a word's own.",
            "  --version  Show the version.",
            "",
            f"Example: {PROGRAM} drill --scenario provider-degradation --profile fast",
        ]
    )


def unknown_word(word: str) -> str:
    """Return the sentence and the hint for a word that is not in the table."""
    near = get_close_matches(word, WORDS, n=1)
    hint = f"Did you mean `{PROGRAM} {near[0]}`?" if near else f"The words are {', '.join(WORDS)}."
    return f"`{word}` is not a word of {PROGRAM}.\n{hint}"


def run_word(name: str, arguments: Sequence[str]) -> int:
    """Run the command line behind a word and return its exit code; usage errors become a sentence and a hint."""
    # Typer is loaded late so that --help and --version of the bare command stay instant.
    import typer  # noqa: PLC0415 (as above)

    from sluicegate.errors import SluicegateError, UsageError  # noqa: PLC0415 (as above)

    app = import_module(WORDS[name].module).app
    try:
        result = typer.main.get_command(app).main(
            args=list(arguments), prog_name=f"{PROGRAM} {name}", standalone_mode=False
        )
    except UsageError as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE
    except SluicegateError as error:
        print(error, file=sys.stderr)
        return 1
    except typer.TyperException as error:
        print(_command_line_error(name, error), file=sys.stderr)
        return error.exit_code
    except SystemExit as left:
        # Click leaves with 1 where its reader has gone; the shell knows another number for that.
        if isinstance(left.__context__, BrokenPipeError):
            return EXIT_BROKEN_PIPE
        raise
    except typer.Abort:
        print("Stopped without doing anything.", file=sys.stderr)
        return 1
    return result if isinstance(result, int) else 0


def _command_line_error(name: str, error: Exception) -> str:
    """Return typer's complaint as a sentence, and where its help is as the hint."""
    # Pydantic puts its own word before what a check of ours says.
    text = getattr(error, "format_message", error.__str__)().strip().replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else f"{PROGRAM} {name}"
    return f"{text.rstrip('.')}.\n`{command} --help` shows what can be said here."


def dispatch(arguments: Sequence[str]) -> int:
    """Answer one command line and return its exit code."""
    if not arguments or arguments[0] in {"--help", "-h"}:
        print(overview(), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else EXIT_USAGE
    if arguments[0] == "--version":
        print(f"{PROGRAM} {sluicegate.__version__}")
        return 0
    word, *rest = arguments
    if word not in WORDS:
        print(unknown_word(word), file=sys.stderr)
        return EXIT_USAGE
    # First, so that neither an installed package nor the current folder can stand in for a part of the same name.
    sys.path.insert(0, str(parts_folder()))
    return run_word(word, rest)


def main() -> None:
    """Run the command line of this process and exit; a closed pipe and Ctrl-C end it without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # In a locale without a sign of ours the text shows a question mark and goes on.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = dispatch(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes stdout once more at exit; give it a place that takes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    sys.exit(code)


if __name__ == "__main__":
    main()
