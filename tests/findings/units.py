"""The sizes of units that texts of the trades use, as Pint and Babel (CLDR) have them.

python -m tests.findings.units            # what differs from src/baton/findings/units.json
python -m tests.findings.units --write    # write it

Pint needs 0.3 s of CPU time for its first unit, and Babel 36 MB of disk, so that neither is asked
when texts are read. Both come with the extra ``dev``.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[2] / "src" / "baton" / "findings" / "units.json"
LANGUAGES = ("en", "de", "fr", "es")
# By dimension its base unit in Pint, and each unit by Pint's name and CLDR's, with the symbols that
# are read exactly as written. No unit is listed whose name says something else more often: cups,
# points, hands and degrees.
UNITS: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "pressure": (
        "pascal",
        {
            "pascal": ("pressure-pascal", "Pa"),
            "hectopascal": ("pressure-hectopascal", "hPa"),
            "kilopascal": ("pressure-kilopascal", "kPa"),
            "megapascal": ("pressure-megapascal", "MPa"),
            "bar": ("pressure-bar", "bar"),
            "millibar": ("pressure-millibar", "mbar"),
            "atmosphere": ("pressure-atmosphere", "atm"),
            "psi": ("pressure-pound-force-per-square-inch", "psi PSI"),
            "mmHg": ("pressure-millimeter-ofhg", "mmHg"),
            "torr": ("", "Torr torr"),
        },
    ),
    "speed": ("kilometer / hour", {"knot": ("speed-knot", "kn kt kts knots knot")}),
    "length": (
        "meter",
        {
            "nautical_mile": ("length-nautical-mile", "nmi"),
            "micrometer": ("length-micrometer", "µm μm"),
            "nanometer": ("length-nanometer", "nm"),
            "decimeter": ("length-decimeter", "dm"),
            "fathom": ("length-fathom", ""),
            "furlong": ("length-furlong", ""),
        },
    ),
    "energy": (
        "watt * hour",
        {
            "joule": ("energy-joule", ""),
            "kilojoule": ("energy-kilojoule", "kJ"),
            "megajoule": ("", "MJ"),
            "gigajoule": ("", "GJ"),
            "kilocalorie": ("energy-kilocalorie", "kcal"),
            "british_thermal_unit": ("energy-british-thermal-unit", "BTU Btu"),
        },
    ),
    "power": (
        "watt",
        {
            "milliwatt": ("power-milliwatt", "mW"),
            "megawatt": ("power-megawatt", "MW"),
            "gigawatt": ("power-gigawatt", "GW"),
            "metric_horsepower": ("", "PS"),
        },
    ),
    "voltage": ("volt", {"volt": ("", "V"), "millivolt": ("", "mV")}),
    "frequency": (
        "hertz",
        {
            "hertz": ("frequency-hertz", "Hz"),
            "kilohertz": ("frequency-kilohertz", "kHz"),
            "megahertz": ("frequency-megahertz", "MHz"),
            "gigahertz": ("frequency-gigahertz", "GHz"),
        },
    ),
    "force": (
        "newton",
        {
            "newton": ("force-newton", "N"),
            "kilonewton": ("", "kN"),
            "force_kilogram": ("force-kilogram-force", "kgf"),
            "force_pound": ("force-pound-force", "lbf"),
        },
    ),
    "torque": (
        "newton * meter",
        {"newton * meter": ("torque-newton-meter", "Nm"), "foot * force_pound": ("", "ft-lb ft-lbs lb-ft lbf-ft")},
    ),
    "current": (
        "ampere",
        {
            "ampere": ("electric-ampere", "A amps"),
            "milliampere": ("electric-milliampere", "mA"),
            "kiloampere": ("", "kA"),
        },
    ),
    "resistance": (
        "ohm",
        {
            "ohm": ("electric-ohm", "Ω Ω ohm"),
            "kiloohm": ("", "kΩ kΩ kohm"),
            "megaohm": ("", "MΩ MΩ"),
            "milliohm": ("", "mΩ mΩ"),
        },
    ),
    "volume": (
        "liter",
        {
            "quart": ("volume-quart", "qt"),
            "fluid_ounce": ("volume-fluid-ounce", ""),
            "hectoliter": ("volume-hectoliter", "hl hL"),
            "centimeter ** 3": ("volume-cubic-centimeter", "cm³ cm3"),
            "foot ** 3": ("volume-cubic-foot", "ft³ ft3"),
        },
    ),
    "area": (
        "meter ** 2",
        {
            "foot ** 2": ("area-square-foot", "ft² ft2"),
            "inch ** 2": ("area-square-inch", ""),
            "mile ** 2": ("area-square-mile", ""),
        },
    ),
    "mass": (
        "gram",
        {"carat": ("mass-carat", "")},
    ),
}  # fmt: skip

# Names that say something else as often: a month, rooms, nodes of a cluster, chocolate.
NOT_UNITS = frozenset(
    [
        "julio",
        "julios",
        "cuarto",
        "cuartos",
        "quart",
        "quarts",
        "knoten",
        "nudo",
        "nudos",
        "bares",
        "bars",
        "faden",
        "brasse",
        "brasses",
        "braza",
        "brazas",
        "karat",
    ]
)


def table() -> dict[str, dict[str, tuple[str, float]]]:
    """Return names in small letters, and symbols as written, each with its dimension and size."""
    # Loaded by name: only who writes the table has them.
    registry = importlib.import_module("pint").UnitRegistry()
    load = importlib.import_module("babel.localedata").load
    locales = [load(language) for language in LANGUAGES]
    names: dict[str, tuple[str, float]] = {}
    symbols: dict[str, tuple[str, float]] = {}
    for dimension, (base, units) in UNITS.items():
        for unit, (cldr, written) in units.items():
            size = float(f"{registry.Quantity(1, unit).to(base).magnitude:.7g}")
            entry = (dimension, size)
            for symbol in written.split():
                symbols[symbol] = entry
            plain = unit.replace("_", " ")
            spelled = {plain, f"{plain}s"} if plain.replace(" ", "").isalpha() else set()
            for locale in locales if cldr else ():
                spelled |= _spelled(locale["unit_patterns"].get(cldr, {}))
            for name in sorted(name.casefold() for name in spelled):
                # Symbols are read as written, and so are other short names: `in`, `a`.
                if len(name) > 3 and name not in NOT_UNITS:
                    names[name] = entry
    return {"names": names, "symbols": symbols}


def _spelled(patterns: Any) -> set[str]:
    """Return the long names of a unit in one language: `Kilopascal`, `kilopascals`."""
    long = patterns.get("long", {})
    if isinstance(long, tuple):
        long = long[1]
    if not isinstance(long, dict):
        return set()
    found = set()
    for count, pattern in long.items():
        if count in ("one", "other", "many", "few") and isinstance(pattern, str):
            name = pattern.replace("{0}", "").strip()
            if name.replace(" ", "").replace("-", "").isalpha():
                found.add(name)
    return found


def written(made: dict[str, dict[str, tuple[str, float]]]) -> str:
    """Return the table as JSON, a unit a line."""
    parts = []
    for part, units in made.items():
        lines = (
            f"  {json.dumps(k, ensure_ascii=False)}: {json.dumps(v)}"
            for k, v in sorted(units.items())
        )
        parts.append(f'"{part}": {{\n' + ",\n".join(lines) + "\n}")
    return "{" + ",\n".join(parts) + "}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name}")
    made = written(table())
    if parser.parse_args().write:
        FILE.write_text(made, "utf-8")
    elif FILE.read_text("utf-8") != made:
        raise SystemExit(f"{FILE.name} differs from what Pint and Babel have: use --write")


if __name__ == "__main__":
    main()
