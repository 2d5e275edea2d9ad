"""Tasks over the document of Swagger's pet store."""

from __future__ import annotations

from typing import Any

from tests.desk.tasks.task import (
    Absent,
    Case,
    Failure,
    Fault,
    Json,
    Task,
    Tool,
    array,
    boolean,
    choice,
    complete,
    integer,
    mapping,
    open_object,
    text,
)

SOURCE = "Swagger Petstore 3.0, openapi.yaml of its repository (Apache-2.0)"


def _pet(number: int, name: str, status: str, **more: Any) -> Json:
    photos = [f"https://pets.example/{number}.png"]
    return {"id": number, "name": name, "photoUrls": photos, "status": status, **more}


PETS = {
    11: _pet(11, "Rex", "available", category={"id": 1, "name": "Dogs"}),
    12: _pet(12, "Tom", "pending", category={"id": 2}),
    13: _pet(13, "Nemo", "sold", category={"id": 3, "name": "Fish"}),
    14: _pet(14, "Polly", "available"),
    15: {**_pet(15, "Kaa", "available"), "category": {"id": 4, "name": "Snakes"}},
}
ORDERS: dict[int, Json] = {
    1: {"id": 1, "petId": 13, "quantity": 1, "status": "delivered", "complete": True},
    2: {"id": 2, "petId": 12, "quantity": 4, "status": "approved", "complete": False},
    3: {"id": 3, "petId": 15, "quantity": 2, "status": "placed"},
    4: {"id": 4, "petId": 99, "quantity": 7, "status": "placed", "complete": False},
}
USERS = {
    "ada": {"firstName": "Ada", "lastName": "Byron", "email": "ada@pets.example"},
    "bob": {"firstName": "Bob", "lastName": "Noyce"},
    "cyd": {"firstName": "Cyd", "lastName": "Day", "email": "cyd@pets.example"},
    "dee": {"lastName": "Dee", "email": "dee@pets.example"},
}


def _one(rows: dict[Any, Json], key: Any, kind: str) -> Json:
    if key not in rows:
        raise Fault(404, f"{kind} not found")
    return rows[key]


def _by_status(given: Json) -> Json:
    wanted = given.get("status", "available")
    return {"result": [one for one in PETS.values() if one["status"] == wanted]}


def _place(given: Json) -> Json:
    if given.get("petId") not in PETS:
        raise Fault(400, "Invalid input")
    return {**given, "id": 1000 + given["petId"], "status": "placed"}


def _user(given: Json) -> Json:
    name = given["username"]
    return {"username": name, **_one(USERS, name, "User")}


PET = open_object(
    *("name", "photoUrls"),
    id=integer(),
    name=text(),
    category=open_object(id=integer(), name=text()),
    photoUrls=array(text()),
    tags=array(open_object(id=integer(), name=text())),
    status=choice("available", "pending", "sold", words="pet status in the store"),
)
ORDER = open_object(
    id=integer(),
    petId=integer(),
    quantity=integer(),
    shipDate=text(format="date-time"),
    status=choice("placed", "approved", "delivered", words="Order Status"),
    complete=boolean(),
)
GET_PET = Tool(
    "petstore",
    "getPetById",
    "Returns a single pet; 404 if it is not found.",
    open_object("petId", petId=integer("ID of pet to return")),
    PET,
    lambda given: _one(PETS, given["petId"], "Pet"),
)
BY_STATUS = Tool(
    "petstore",
    "findPetsByStatus",
    "Finds pets by status.",
    open_object(status=choice("available", "pending", "sold", default="available")),
    open_object("result", result=array(PET)),
    _by_status,
)
INVENTORY = Tool(
    "petstore",
    "getInventory",
    "Returns a map of status codes to quantities.",
    open_object(),
    mapping(integer()),
    lambda given: {"available": 3, "sold": 1},
)
GET_ORDER = Tool(
    "petstore",
    "getOrderById",
    "Find purchase order by ID; 404 if it is not found.",
    open_object("orderId", orderId=integer("ID of order that needs to be fetched")),
    ORDER,
    lambda given: _one(ORDERS, given["orderId"], "Order"),
)
PLACE = Tool(
    "petstore",
    "placeOrder",
    "Place a new order in the store; 400 if the input is invalid.",
    {**ORDER, "additionalProperties": False},
    ORDER,
    _place,
    changes=True,
)
USER = Tool(
    "petstore",
    "getUserByName",
    "Get user by user name; 404 if it is not found.",
    open_object("username", username=text("The name that needs to be fetched")),
    open_object(
        id=integer(),
        username=text(),
        firstName=text(),
        lastName=text(),
        email=text(),
        phone=text(),
        userStatus=integer("User Status"),
    ),
    _user,
)

TASKS = (
    Task(
        "animal-card",
        SOURCE,
        "Card of an animal in the shop: what it is called and which kind of animal it "
        "is",
        complete(animalNo=integer()),
        complete(calledName=text(), kind=text("kind of animal, such as Dogs")),
        (GET_PET, BY_STATUS),
        (
            Case({"animalNo": 11}, {"calledName": "Rex", "kind": "Dogs"}),
            Case({"animalNo": 14}, Absent()),
            Case({"animalNo": 12}, Absent()),
            Case({"animalNo": 13}, {"calledName": "Nemo", "kind": "Fish"}),
        ),
    ),
    Task(
        "animals-in-state",
        SOURCE,
        "Names of the animals in one state: FREE ones can be bought, HELD ones are "
        "reserved, GONE ones were bought",
        complete(state=choice("FREE", "HELD", "GONE")),
        complete(names=array(text())),
        (BY_STATUS,),
        (
            Case({"state": "FREE"}, {"names": ["Rex", "Polly", "Kaa"]}),
            Case({"state": "GONE"}, {"names": ["Nemo"]}),
            Case({"state": "HELD"}, {"names": ["Tom"]}),
            Case({"state": "FREE"}, {"names": ["Rex", "Polly", "Kaa"]}),
        ),
    ),
    Task(
        "stock",
        SOURCE,
        "How many animals are free to buy, and how many were sold so far",
        complete(),
        complete(free=integer(), sold=integer()),
        (INVENTORY,),
        tuple(Case({}, {"free": 3, "sold": 1}) for _ in range(4)),
    ),
    Task(
        "buy",
        SOURCE,
        "Order some animals of one kind by the number of the animal; gives the number "
        "of the order",
        complete(animal=integer("number of the animal"), pieces=integer(minimum=1)),
        complete(orderNo=integer()),
        (PLACE, GET_ORDER),
        (
            Case({"animal": 11, "pieces": 2}, {"orderNo": 1011}),
            Case({"animal": 13, "pieces": 1}, {"orderNo": 1013}),
            Case({"animal": 77, "pieces": 1}, Failure(400)),
            Case({"animal": 15, "pieces": 9}, {"orderNo": 1015}),
        ),
    ),
    Task(
        "order-ticket",
        SOURCE,
        "State of an order. Each answer has to carry the ticket of its request",
        complete(ticket=text("caller's own mark"), order=integer()),
        complete(
            ticket=text("as in the request"),
            state=choice("placed", "approved", "delivered"),
        ),
        (GET_ORDER,),
        (
            Case({"ticket": "t1", "order": 1}, {"ticket": "t1", "state": "delivered"}),
            Case({"ticket": "zz", "order": 2}, {"ticket": "zz", "state": "approved"}),
            Case({"ticket": "", "order": 3}, {"ticket": "", "state": "placed"}),
            Case({"ticket": "t-9", "order": 9}, Failure(404)),
        ),
    ),
    Task(
        "order-done",
        SOURCE,
        "Whether an order is finished, and its number of pieces",
        complete(order=integer()),
        complete(finished=boolean(), pieces=integer()),
        (GET_ORDER,),
        (
            Case({"order": 1}, {"finished": True, "pieces": 1}),
            Case({"order": 3}, Absent()),
            Case({"order": 2}, {"finished": False, "pieces": 4}),
            Case({"order": 4}, {"finished": False, "pieces": 7}),
        ),
    ),
    Task(
        "ordered-animal",
        SOURCE,
        "Name of the animal that was ordered, by the number of the order",
        complete(orderNumber=integer()),
        complete(animal=text("its name")),
        (GET_ORDER, GET_PET),
        (
            Case({"orderNumber": 1}, {"animal": "Nemo"}),
            Case({"orderNumber": 2}, {"animal": "Tom"}),
            Case({"orderNumber": 4}, Failure(404)),
            Case({"orderNumber": 3}, {"animal": "Kaa"}),
        ),
    ),
    Task(
        "orders-of-list",
        SOURCE,
        "State of each of several orders, in the order of the question",
        complete(numbers=array(integer())),
        complete(orders=array(complete(number=integer(), state=text()))),
        (GET_ORDER,),
        (
            Case(
                {"numbers": [2, 1]},
                {
                    "orders": [
                        {"number": 2, "state": "approved"},
                        {"number": 1, "state": "delivered"},
                    ]
                },
            ),
            Case({"numbers": [3]}, {"orders": [{"number": 3, "state": "placed"}]}),
            Case({"numbers": [1, 8]}, Failure(404)),
            Case({"numbers": []}, {"orders": []}),
        ),
    ),
    Task(
        "address-book",
        SOURCE,
        "Full name (first name, one space, last name) and mail address of a user",
        complete(login=text()),
        complete(fullName=text(), mail=text()),
        (USER,),
        (
            Case(
                {"login": "ada"}, {"fullName": "Ada Byron", "mail": "ada@pets.example"}
            ),
            Case({"login": "bob"}, Absent()),
            Case({"login": "cyd"}, {"fullName": "Cyd Day", "mail": "cyd@pets.example"}),
            Case({"login": "dee"}, Absent()),
        ),
    ),
    Task(
        "order-price",
        SOURCE,
        "What an order costs, in cents",
        complete(order=integer()),
        complete(cents=integer("total price of the order")),
        (GET_ORDER, GET_PET),
        (Case({"order": 1}, None),),
        lacking="neither orders nor pets have a price",
    ),
    Task(
        "cancel-order",
        SOURCE,
        "Cancel an order",
        complete(order=integer()),
        complete(cancelled=boolean("true once the order is cancelled")),
        (GET_ORDER, PLACE),
        (Case({"order": 2}, None),),
        lacking="nothing that is offered cancels an order",
    ),
    Task(
        "order-by-name",
        SOURCE,
        "petstore.getOrderById",
        complete(orderId=integer()),
        complete(id=integer(), status=text(), complete=boolean()),
        (GET_ORDER, GET_PET),
        (
            Case({"orderId": 1}, {"id": 1, "status": "delivered", "complete": True}),
            Case({"orderId": 3}, Absent()),
            Case({"orderId": 9}, Failure(404)),
            Case({"orderId": 2}, {"id": 2, "status": "approved", "complete": False}),
        ),
    ),
)
