"""How Sphinx builds the documentation: `tox -e docs`."""

import sys
from pathlib import Path

from computeapi import __version__

# What this folder has beside the pages.
sys.path.insert(0, str(Path(__file__).parent))

project = 'computeapi'
release = version = __version__
html_title = f'computeapi {__version__}'
extensions = ['myst_parser', 'generators']
exclude_patterns = ['examples']
root_doc = 'index'

# Headings can be linked to as on GitHub: `deploying.md#agents`.
myst_heading_anchors = 3

html_theme = 'furo'
html_theme_options = {
    'navigation_with_keys': True,
    # Wide enough for a hundred characters of code, and for tables.
    'light_css_variables': {'code-font-size': '80%'},
}
html_css_files = ['wide.css']
html_static_path = ['static']
html_show_copyright = False
html_copy_source = False
pygments_style = 'friendly'
pygments_dark_style = 'monokai'
