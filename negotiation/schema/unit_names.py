"""Names and symbols of units, as whole words, each with the units that it may mean.

The sizes are those of the library `pint`, to which the meanings are expressions; a few
units that it has as plain numbers, or in another size than people mean, are defined in
`DEFINED`. The library itself would also read "pin", "item" or "a" as units, so it only
ever gets meanings of this list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from negotiation.late_patterns import late_pattern


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


CURRENCIES: Final = _listed(
    "AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR "
    "ISK JPY KRW MAD MXN MYR NOK NZD PEN PHP PLN RON RUB SAR SEK SGD THB TRY TWD UAH "
    "USD VND ZAR"
)
"Codes of ISO 4217; a currency is a unit without a rate to any other."

DEFINED: Final = (
    *(f"{code} = [{code}]" for code in sorted(CURRENCIES)),
    # The library counts these as numbers, so that bytes would become degrees.
    *("data_bit = [data]", "data_byte = 8 * data_bit"),
    *("turn_of_circle = [angle]", "angle_degree = turn_of_circle / 360"),
    "angle_radian = turn_of_circle / 6.283185307179586476925286766559006",
    # One dimension in physics, and yet not one thing.
    *("dose_gray = [dose]", "dose_sievert = [dose_equivalent]"),
    *("decay = [decay]", "heartbeat = [heartbeat]", "decibel_level = [decibel]"),
    *("light_lumen = [lumen]", "screen_pixel = [pixel]"),
    # Calendar months have no length in days.
    *("calendar_month = [month]", "calendar_year = 12 * calendar_month"),
    # The library takes the foot of the old American survey for these.
    *("marine_fathom = 6 * foot", "furlong_of_feet = 660 * foot"),
    "acre_of_feet = 43560 * foot ** 2",
)
"Definitions for the library, besides its own."

PREFIXES: Final[Mapping[str, str]] = {
    symbol: word
    for symbol, _, word in (
        one.partition(":")
        for one in _listed(
            "T:tera G:giga M:mega k:kilo K:kilo h:hecto d:deci c:centi m:milli µ:micro "
            "μ:micro u:micro n:nano p:pico Ki:kibi Mi:mebi Gi:gibi Ti:tebi"
        )
    )
}

NAMES: Final = """
* meter: metre meter; inch: inch; foot: foot feet; yard: yard; mile: mile statute_mile;
nautical_mile: mile nautical_mile sea_mile; marine_fathom: fathom;
furlong_of_feet: furlong; * micron: micron; angstrom: angstrom ångström;
light_year: light_year lightyear; * parsec: parsec;
astronomical_unit: astronomical_unit; * gram: gram gramme;
metric_ton: ton tonne metric_ton; short_ton: ton short_ton us_ton;
long_ton: ton long_ton imperial_ton; pound: pound; GBP: pound pound_sterling;
ounce: ounce; troy_ounce: ounce troy_ounce;
US_fluid_ounce: ounce fluid_ounce us_fluid_ounce;
imperial_fluid_ounce: ounce fluid_ounce imperial_fluid_ounce; stone: stone;
carat: carat; * second: second sec; minute: minute; hour: hour hr; day: day;
week: week; fortnight: fortnight; calendar_month: month; calendar_year: year;
degree_Celsius: celsius centigrade; degree_Fahrenheit: fahrenheit; * kelvin: kelvin;
degree_Rankine: rankine; degree_Reaumur: reaumur réaumur; * liter: litre liter;
US_liquid_gallon: gallon us_gallon us_liquid_gallon;
imperial_gallon: gallon imperial_gallon uk_gallon; US_liquid_quart: quart us_quart;
imperial_quart: quart imperial_quart; US_pint: pint us_pint;
imperial_pint: pint imperial_pint uk_pint; cup: cup us_cup; imperial_cup: cup;
tablespoon: tablespoon; 15*milliliter: tablespoon; teaspoon: teaspoon;
5*milliliter: teaspoon; oil_barrel: barrel oil_barrel; beer_barrel: barrel;
bushel: bushel us_bushel; imperial_bushel: bushel; hectare: hectare;
acre_of_feet: acre; knot: knot; * pascal: pascal; * bar: bar;
psi: psi pound_per_square_inch; standard_atmosphere: atmosphere; torr: torr;
millimeter_Hg: millimetre_of_mercury millimeter_of_mercury; inch_Hg: inch_of_mercury;
* joule: joule; * calorie: calorie; kilocalorie: calorie food_calorie;
* electron_volt: electronvolt electron_volt;
british_thermal_unit: btu british_thermal_unit; * watt: watt; * watt*hour: watt_hour;
* ampere*hour: ampere_hour amp_hour; metric_horsepower: horsepower metric_horsepower;
UK_horsepower: horsepower mechanical_horsepower; * volt: volt; * ampere: ampere amp;
* ohm: ohm; * farad: farad; * henry: henry; * coulomb: coulomb; * tesla: tesla;
* newton: newton; * mole: mole mol; * hertz: hertz;
turn_of_circle/minute: rpm revolution_per_minute;
heartbeat/minute: bpm beat_per_minute; * decay/second: becquerel; * dose_gray: gray;
* dose_sievert: sievert; decibel_level: decibel; light_lumen: lumen;
light_lumen/meter**2: lux; candela: candela; angle_degree: degree;
degree_Celsius: degree; degree_Fahrenheit: degree; angle_radian: radian;
* data_byte: byte; * data_bit: bit; screen_pixel: pixel; EUR: euro;
EUR/100: euro_cent eurocent cent; USD: dollar us_dollar; USD/100: cent us_cent;
CAD: dollar canadian_dollar; AUD: dollar australian_dollar; JPY: yen;
CNY: yuan renminbi; INR: rupee; CHF: swiss_franc; GBP/100: penny pence
"""
"Each meaning with its names; those with a star take the prefixes of SI as words, too."

SYMBOLS: Final = """
meter k c m µ μ n u: m; inch: ″; foot: ft; yard: yd yds; mile: mi; nautical_mile: nmi;
gram k m µ μ n u: g; metric_ton: t; pound: lb lbs; ounce: oz; troy_ounce: oz;
US_fluid_ounce: oz; second m µ μ n u p: s; minute: min mins; hour: h hr hrs;
second: sec secs; degree_Celsius: C °C ℃; degree_Fahrenheit: F °F ℉; kelvin m: K;
liter m c d h µ μ: L l; US_liquid_gallon: gal; imperial_gallon: gal; hectare: ha;
kilometer/hour: kmh kph; mile/hour: mph; knot: kn kt kts; pascal k h M G: Pa;
bar m: bar; psi: psi; standard_atmosphere: atm; millimeter_Hg: mmHg; inch_Hg: inHg;
joule k M G: J; calorie: cal; kilocalorie: kcal Cal; electron_volt k M G: eV;
watt k m M G T: W; watt*hour k M G T: Wh; ampere*hour m: Ah; volt k m M: V;
ampere m: A; ohm k M: Ω; picofarad: pF; nanofarad: nF; microfarad: µF μF; newton k: N;
mole m µ μ: mol; hertz k K M G: Hz; turn_of_circle/minute: rpm RPM;
heartbeat/minute: bpm BPM; dose_sievert m µ μ: Sv; dose_gray m: Gy;
decay/second k M G: Bq; decibel_level: dB; light_lumen: lm; light_lumen/meter**2: lx;
candela: cd; screen_pixel: px; data_byte k K M G T Ki Mi Gi Ti: B; data_bit k M G: bit;
data_bit/second k M G: bps; EUR: €; USD: $; CAD: $; AUD: $; GBP: £; JPY: ¥; CNY: ¥;
metric_horsepower: hp; UK_horsepower: hp; degree_Celsius: 摄氏度 摄氏;
degree_Fahrenheit: 华氏度 华氏; meter: 米 公尺; kilometer: 公里 千米;
centimeter: 厘米; gram: 克;
kilogram: 公斤 千克; liter: 升; mile: 英里; foot: 英尺; second: 秒; minute: 分钟;
hour: 小时; day: 天; CNY: 元 人民币; USD: 美元; EUR: 欧元
"""
"Each meaning, the prefixes that its symbols take, and the symbols, by their case."

ENTRY: Final = late_pattern(r"(?:^|; )(\* )?([^:;\n]+): ([^;\n]+)", re.MULTILINE)

SUFFIXES: Final[Mapping[str, str]] = {
    one.lower(): one
    for one in _listed(
        "C F mm cm km nmi ft yd mi mg kg lb lbs ms ns sec secs hr hrs mins mL kB MB GB "
        "TB kWh kph kmh mph kPa hPa psi mbar Hz kHz MHz GHz rpm bpm px USD EUR GBP JPY "
        "CNY CHF oz gal"
    )
}
"Symbols that are clear in small letters at the end of a name; a single m may be all."


@cache
def meanings_by_name() -> Mapping[str, tuple[str, ...]]:
    """Return the meanings of each name, in small letters with `_` between words."""
    return _gathered(_names())


@cache
def meanings_by_symbol() -> Mapping[str, tuple[str, ...]]:
    """Return the meanings of each symbol, whose letters keep their case."""
    return _gathered(_symbols())


def _names() -> Iterator[tuple[str, str]]:
    prefixes = sorted(set(PREFIXES.values()))
    for star, meaning, names in ENTRY.findall(NAMES):
        for name in names.split():
            yield name, meaning
            if star:
                yield from ((f"{one}{name}", f"{one}{meaning}") for one in prefixes)


def _symbols() -> Iterator[tuple[str, str]]:
    yield from ((code, code) for code in CURRENCIES)
    for _, head, symbols in ENTRY.findall(SYMBOLS):
        meaning, *prefixes = head.split()
        for symbol in symbols.split():
            yield symbol, meaning
            for one in prefixes:
                yield f"{one}{symbol}", f"{PREFIXES[one]}{meaning}"


def _gathered(pairs: Iterator[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for name, meaning in pairs:
        found.setdefault(name, set()).add(meaning)
    return {name: tuple(sorted(meanings)) for name, meanings in found.items()}
