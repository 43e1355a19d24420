"""`search_nodes` with the real models: a question as people ask it finds the entity that answers, nonsense nothing.

The reference server looks for the whole question as a part of a name, type or observation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import nacre
from nacre.knowledge_graph.graph import KnowledgeGraph
from nacre.knowledge_graph.model import Edge, Graph, Node

pytestmark = pytest.mark.slow

NODES = (
    Node("Anna Berg", "person", ("Leads the data platform team", "Allergic to peanuts", "Born in Gothenburg in 1988")),
    Node("Tom Okafor", "person", ("Prefers tabs over spaces", "Goes climbing every Thursday evening")),
    Node("Priya Nair", "person", ("On parental leave until October", "Speaks Malayalam, Hindi and English")),
    Node("Luis Ortega", "person", ("Takes care of invoices and contracts", "His daughter plays the cello")),
    Node("Halden", "company", ("Sells warehouse robots", "Its headquarters are in Rotterdam")),
    Node("Quill", "project", ("Rewrites the billing service in Rust", "Release planned for the second week of March")),
    Node("Lantern", "project", ("Internal dashboard for support tickets", "Was stopped because nobody used it")),
    Node("orders-db", "database", ("PostgreSQL 16 on port 5433", "Backed up every night at two")),
    Node("staging", "environment", ("Deployed automatically from the main branch", "Resets its data on Sundays")),
    Node("Meridian Cafe", "place", ("Serves oat milk flat whites", "Closed on Mondays")),
    Node("Biscuit", "pet", ("A brown dachshund", "Needs a tablet for its heart each morning")),
    Node("Volvo", "car", ("Winter tyres are stored in the garage", "Next inspection is due in June")),
    Node("Kestrel", "service", ("Sends password reset mails", "Times out when the mail queue is full")),
    Node("weekly sync", "meeting", ("Held on Tuesdays at ten", "Notes are kept in the team wiki")),
)
EDGES = (
    Edge("Anna Berg", "works_at", "Halden"),
    Edge("Tom Okafor", "works_on", "Quill"),
    Edge("Priya Nair", "manages", "Lantern"),
    Edge("Quill", "stores_data_in", "orders-db"),
    Edge("Luis Ortega", "married_to", "Anna Berg"),
    Edge("Anna Berg", "owns", "Biscuit"),
)

# The entity that answers, and the question.
QUESTIONS = (
    ("Halden", "Where does Anna work?"),
    ("Anna Berg", "Who is in charge of the data platform?"),
    ("Anna Berg", "Does anybody have a food allergy?"),
    ("Tom Okafor", "What does Tom do on Thursdays?"),
    ("Tom Okafor", "Who likes tabs better than spaces?"),
    ("Priya Nair", "When does Priya come back from leave?"),
    ("Priya Nair", "Which languages does Priya speak?"),
    ("Luis Ortega", "Who handles the invoices?"),
    ("Luis Ortega", "Who is Anna married to?"),
    ("Halden", "What does Halden sell?"),
    ("Quill", "When will Quill be released?"),
    ("Quill", "Which project rewrites billing?"),
    ("Lantern", "Why was the support dashboard stopped?"),
    ("orders-db", "Which port does the orders database listen on?"),
    ("orders-db", "How often is the orders-db backed up?"),
    ("staging", "When is the data on staging reset?"),
    ("Meridian Cafe", "Where can I get a coffee with oat milk?"),
    ("Biscuit", "What medicine does the dog need?"),
    ("Volvo", "When does the car have to be inspected?"),
    ("Kestrel", "What sends the mails for resetting a password?"),
)
# Words as clients search for them today: the reference server finds these.
WORDS = ("Tom Okafor", "person", "headquarters", "port 5433", "Closed on Mondays", "e")
NONSENSE = (
    "How do I bake sourdough bread?",
    "What is the capital of Mongolia?",
    "xyzzy plugh frobnicate",
    "Who won the chess olympiad in 1986?",
    "Explain the second law of thermodynamics",
)


# A second graph: one is asked for in words that it does not have.
OTHERS = (
    Node("Elena Marsh", "person", ("Vegetarian since 2015", "Plays in a brass band", "Her laptop has a broken hinge")),
    Node("Greenhouse", "project", ("Predicts the demand for vegetables", "Budget of 40,000 euros")),
    Node("Redis cache", "service", ("Evicts keys after one hour", "Runs on three nodes")),
    Node("Oslo office", "place", ("The door code is 7731", "Has a rooftop terrace", "Seats twelve people")),
    Node("Marco", "person", ("Quit smoking last year", "Flies to Lisbon on Friday", "Dislikes phone calls")),
    Node("Nightly build", "job", ("Fails when the disk is full", "Takes 42 minutes")),
    Node("Printer", "device", ("Out of magenta toner", "Located on the second floor")),
    Node("Sailing boat", "thing", ("Moored in Kiel", "Painted last spring")),
)
OTHER_EDGES = (Edge("Elena Marsh", "mentors", "Marco"), Edge("Greenhouse", "depends_on", "Redis cache"))
OTHER_QUESTIONS = (
    ("Elena Marsh", "Who does not eat meat?"),
    ("Elena Marsh", "What instrument group does Elena play with?"),
    ("Elena Marsh", "What is wrong with Elena's laptop?"),
    ("Greenhouse", "How much money does Greenhouse have?"),
    ("Greenhouse", "Which algorithm forecasts vegetable demand?"),
    ("Redis cache", "How long are cached keys kept?"),
    ("Oslo office", "How do I get into the Oslo office?"),
    ("Oslo office", "How many desks are there in Oslo?"),
    ("Marco", "Where is Marco going on Friday?"),
    ("Marco", "Should I call Marco or write to him?"),
    ("Nightly build", "Why did the nightly build fail?"),
    ("Nightly build", "How long does the build take?"),
    ("Printer", "Where is the printer?"),
    ("Printer", "Which toner has to be ordered?"),
    ("Sailing boat", "In which harbour is the boat?"),
    ("Marco", "Who is mentored by Elena?"),
    ("Redis cache", "What does Greenhouse depend on?"),
    ("Marco", "Who gave up cigarettes?"),
    ("Sailing boat", "When was the boat painted?"),
    ("Elena Marsh", "Who is Marco's mentor?"),
)
OTHER_NONSENSE = (
    "How tall is Mount Everest?",
    "Which team won the world cup in 2018?",
    "What is the boiling point of helium?",
    "How do I file a tax return in Brazil?",
    "recipe for lentil soup",
    "Who painted the Mona Lisa?",
    "What is the speed of light?",
    "asdf qwer zxcv",
    "Translate this sentence into Latin",
    "Write a poem about autumn",
)


def as_the_reference_server(query: str) -> Graph:
    wanted = query.lower()
    nodes = tuple(
        node for node in NODES if any(wanted in each.lower() for each in (node.name, node.type, *node.observations))
    )
    names = {each.name for each in nodes}
    return Graph(nodes, tuple(each for each in EDGES if each.source in names or each.target in names))


def graph_of(path: Path, nodes: Sequence[Node], edges: Sequence[Edge]) -> Iterator[KnowledgeGraph]:
    with nacre.open(path / "memories.db", space="me") as made:
        graph = KnowledgeGraph(made)
        graph.create_entities(nodes)
        graph.create_relations(edges)
        made.remember("The chess olympiad of 1986 took place in Dubai")  # a note, and no part of the graph
        yield graph


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    yield from graph_of(tmp_path_factory.mktemp("graph"), NODES, EDGES)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    yield from graph_of(tmp_path_factory.mktemp("other"), OTHERS, OTHER_EDGES)


def names(found: Graph) -> list[str]:
    return [each.name for each in found.nodes]


def test_questions_find_the_entity_that_answers(graph: KnowledgeGraph) -> None:
    """All of them; by the reference server's rule none."""
    assert [one for one, asked in QUESTIONS if one in names(as_the_reference_server(asked))] == []
    found = {asked: names(graph.search(asked)) for _, asked in QUESTIONS}
    assert [(asked, found[asked]) for one, asked in QUESTIONS if one not in found[asked]] == []
    assert sum(map(len, found.values())) <= 1.5 * len(QUESTIONS)  # and little else


def test_questions_that_nothing_was_tuned_on(other: KnowledgeGraph) -> None:
    missed = [asked for one, asked in OTHER_QUESTIONS if one not in names(other.search(asked))]
    assert len(missed) <= 2, missed
    found = [asked for asked in OTHER_NONSENSE if other.search(asked).nodes]
    assert len(found) <= 1, found


@pytest.mark.parametrize("query", NONSENSE)
def test_nonsense_finds_nothing(graph: KnowledgeGraph, query: str) -> None:
    assert graph.search(query) == Graph((), ())


@pytest.mark.parametrize("query", [*WORDS, "", " ", "x" * 20_000, "a\0b", "\ud800", '"', "kind:note", "(", "NOT"])
def test_what_matches_exactly_comes_first_as_before(graph: KnowledgeGraph, query: str) -> None:
    found, before = graph.search(query), as_the_reference_server(query)
    assert found.nodes[: len(before.nodes)] == before.nodes
    assert found.edges[: len(before.edges)] == before.edges
    assert len(set(names(found))) == len(found.nodes)
    assert set(found.nodes) <= set(NODES)
    assert {each for each in EDGES if {each.source, each.target} & set(names(found))} == set(found.edges)


def test_a_relation_brings_both_its_ends(graph: KnowledgeGraph) -> None:
    found = graph.search("Where does Anna work?")
    assert names(found) == ["Anna Berg", "Halden"]
    assert Edge("Anna Berg", "works_at", "Halden") in found.edges
    assert Edge("Luis Ortega", "married_to", "Anna Berg") in found.edges  # as in the reference server, from or to one
