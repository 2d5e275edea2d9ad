# kind: plain functions without annotations, isinstance checks, attributes by name
"""Requester half written in a simple style."""
import json
import datetime


class Person(object):
    fields = ("name", "age", "born")

    def __init__(self, **values):
        for field in self.fields:
            setattr(self, field, values.get(field))

    def as_dict(self):
        result = {}
        for field in self.fields:
            value = getattr(self, field)
            if isinstance(value, (datetime.date, datetime.datetime)):
                value = value.isoformat()
            if value is not None:
                result[field] = value
        return result


class Employee(Person):
    fields = Person.fields + ("company",)

    def __init__(self, company, **values):
        super(Employee, self).__init__(**values)
        self.company = company


def parse_person(data):
    born = data.get("born")
    if born:
        year, month, day = [int(part) for part in born.split("-")]
        data = dict(data, born=datetime.date(year, month, day))
    if "company" in data:
        person = Employee(**data)
    else:
        person = Person(**data)
    assert hasattr(person, "name")
    return person


def encode_request(people):
    parsed = [parse_person(p) for p in people]
    employees = list(filter(lambda p: isinstance(p, Employee), parsed))
    others = [p for p in parsed if not issubclass(type(p), Employee)]
    body = {
        "employees": [p.as_dict() for p in employees],
        "others": [p.as_dict() for p in others],
        "count": len(parsed),
    }
    return json.dumps(body, indent=2, sort_keys=True)


def decode_response(text):
    try:
        data = json.loads(text)
    except ValueError:
        return {"ok": False, "error": "invalid json"}
    if not isinstance(data, dict):
        raise TypeError("expected an object, got " + type(data).__name__)
    i = 0
    names = []
    while i < len(data.get("names", [])):
        name = data["names"][i]
        i += 1
        if not name:
            continue
        if name == "END":
            break
        names.append(name.strip().title())
    else:
        names.append("(complete)")
    return {"ok": True, "names": names, "read": i}
