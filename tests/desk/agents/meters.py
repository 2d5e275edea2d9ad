"""Electricity meters."""

import base64
import struct
from typing import TypedDict


class Reading(TypedDict):
    energy_wh: int
    voltage_v: float
    alarm: bool


class Frame(TypedDict):
    frame: str


class Stored(TypedDict):
    stored_wh: int


def read_meter(meter: int) -> Reading:
    """Read one meter: energy in watt-hours, voltage in volts, and its alarm."""
    return {"energy_wh": meter * 1000, "voltage_v": 230.5, "alarm": meter % 2 == 1}


def read_frame(meter: int) -> Frame:
    """Read one meter's raw frame, in base64.

    The frame is packed, big-endian, 7 bytes: uint32 energy in watt-hours, uint16
    voltage in tenths of a volt, uint8 flags of which bit 0 is the alarm.
    """
    frame = struct.pack(">IHB", meter * 1000, 2305, meter % 2)
    return {"frame": base64.b64encode(frame).decode()}


def store_reading(meter: int, energy_wh: int, voltage_v: float) -> Stored:
    """Keep a reading of a meter: energy in watt-hours, voltage in volts."""
    assert voltage_v == 230.5
    return {"stored_wh": energy_wh + meter * 0}
