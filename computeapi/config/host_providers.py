"""The options for what hosts have besides the usual, which flavors and images can require."""

from oslo_config import cfg
from oslo_config.types import Dict, Integer, List, String

from computeapi.resource_classes import SPECIAL, TRAIT


class ResourceAmounts(Dict):
    """Amounts by resource class, other than those of sizes."""

    def __init__(self) -> None:
        super().__init__(Integer(min=1, max=2**31 - 1))

    def __call__(self, value: object) -> dict[str, int]:
        found: dict[str, int] = super().__call__(value)
        for name in found:
            String(regex=SPECIAL, max_length=255)(name)
        return found


TRAITS = cfg.Opt(
    'traits',
    type=List(String(regex=TRAIT)),
    default=[],
    help='Traits of the host besides the standard ones of its driver, such as HW_CPU_X86_AVX2 or CUSTOM_FAST, which '
    'flavors (trait:CUSTOM_FAST=required) and images can require, or flavors forbid.',
)
RESOURCES = cfg.Opt(
    'resources',
    type=ResourceAmounts(),
    default={},
    sample_default='',
    help='Amounts of resources of the host besides VCPU, MEMORY_MB and DISK_GB, by resource class, such as VGPU:4 or '
    'CUSTOM_FPGA:2, which flavors can require (resources:VGPU=1). With [placement]enabled, they and the traits are '
    'reported to Placement.',
)
