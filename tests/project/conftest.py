"""What several tests of the project use."""

import pytest
from pages import chromium


@pytest.fixture(scope="session")
def browser():
    with chromium() as browser:
        yield browser
