"""What a drill does unless it is asked for something else; its command line and its hints read it here."""

from __future__ import annotations

from pathlib import Path

SCENARIO = "provider-degradation"
PROFILE = "full"
SERVER = "auto"
# Contract §8: 12 jobs/s of the three classes.
RATE = "12/s"
MIX = "lint-fix:70,test-patch:25,refactor-plan:5"
REPORT_DIR = Path("drill-report")
