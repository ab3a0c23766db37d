"""The releases of OpenStack, and the newest microversion of each service in them."""

from typing import NamedTuple

from computeapi.errors import Invalid


class Release(NamedTuple):
    """The newest microversion of each service; the first one if the service had no microversions yet."""

    compute: str
    volume: str
    share: str


RELEASES = {
    # By number and name. From the microversion histories that Nova, Cinder and Manila publish.
    ('2015.1', 'kilo'): Release('2.3', '3.0', '2.0'),
    ('2015.2', 'liberty'): Release('2.12', '3.0', '2.6'),
    ('2016.1', 'mitaka'): Release('2.25', '3.0', '2.15'),
    ('2016.2', 'newton'): Release('2.38', '3.15', '2.22'),
    ('2017.1', 'ocata'): Release('2.42', '3.27', '2.32'),
    ('2017.2', 'pike'): Release('2.53', '3.43', '2.40'),
    ('2018.1', 'queens'): Release('2.60', '3.50', '2.42'),
    ('2018.2', 'rocky'): Release('2.65', '3.55', '2.46'),
    ('2019.1', 'stein'): Release('2.72', '3.59', '2.49'),
    ('2019.2', 'train'): Release('2.79', '3.59', '2.51'),
    ('2020.1', 'ussuri'): Release('2.87', '3.60', '2.55'),
    ('2020.2', 'victoria'): Release('2.87', '3.62', '2.57'),
    ('2021.1', 'wallaby'): Release('2.88', '3.64', '2.63'),
    ('2021.2', 'xena'): Release('2.90', '3.66', '2.65'),
    ('2022.1', 'yoga'): Release('2.90', '3.68', '2.70'),
    ('2022.2', 'zed'): Release('2.93', '3.70', '2.73'),
    ('2023.1', 'antelope'): Release('2.95', '3.70', '2.78'),
    ('2023.2', 'bobcat'): Release('2.95', '3.70', '2.82'),
    ('2024.1', 'caracal'): Release('2.96', '3.71', '2.85'),
    ('2024.2', 'dalmatian'): Release('2.96', '3.71', '2.87'),
    ('2025.1', 'epoxy'): Release('2.100', '3.71', '2.89'),
    ('2025.2', 'flamingo'): Release('2.100', '3.71', '2.91'),
    ('2026.1', 'gazpacho'): Release('2.103', '3.71', '2.95'),
    ('2026.2', 'hibiscus'): Release('2.104', '3.71', '2.98'),
}


def release_of(name: str | float) -> Release:
    """A release by its name or number, which may be a float as in YAML and Python; Invalid for an unknown one."""
    for names, release in RELEASES.items():
        if str(name).lower() in names:
            return release
    known = ', '.join(f'{number} ({name.capitalize()})' for number, name in RELEASES)
    raise Invalid(f'There is no release {name}; there are {known}.')


def options_of(name: str | float) -> dict[tuple[str, str], str]:
    """The configuration options, by group and name, of a cloud that imitates a release; Invalid."""
    compute, volume, share = release_of(name)
    newest = {'api': compute, 'volume': volume, 'share': share}
    return {(group, 'max_microversion'): version for group, version in newest.items()}
