"""The example works as it is printed in the docs, in well under a minute."""

from __future__ import annotations

import re

import pytest

from examples.featurize import main


def test_the_example_prints_features_near_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    printed = capsys.readouterr().out
    assert "288 cells" in printed
    assert "zone_hour_mean" in printed
    assert re.search(r"state [0-9a-f]{12}: zone_hour_mean, zone_hour_count", printed)
