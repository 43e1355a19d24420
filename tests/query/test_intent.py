"""Intent detection: a table of questions, and properties of any text."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import Repeated, assert_linear, assert_takes_less
from nacre.query import intent
from nacre.query.intent import NAMESPACE_WEIGHTS, Intent, IntentName, detect

# By language: what fewer cues have to tell.
ELSEWHERE: Mapping[IntentName, str] = {
    "how-to": """
        Wie kann ich den Server neu starten?
        Comment puis-je redémarrer le serveur ?
        ¿Cómo puedo reiniciar el servidor?
        ¿Cómo se despliega?
        Como posso reiniciar o servidor da empresa?
        Come posso riavviare il server della ditta?
        Как можно перезапустить сервер?
        如何重新启动我们的服务器
        サーバーを再起動する方法
    """,
    "location": """
        Wo liegt die Konfiguration des Servers?
        Wo ist die Konfiguration?
        どこにありますか
        Où se trouve la configuration du serveur ?
        ¿Dónde está la configuración del servidor?
        Onde fica a configuração do servidor?
        Dove si trova la configurazione del server?
        Где находится конфигурация сервера?
        服务器的配置在哪里呢
        サーバーの設定はどこにありますか
    """,
    "explanation": """
        pourquoi pas
        Warum haben wir den Anbieter gewechselt?
        Pourquoi avons-nous changé de fournisseur ?
        ¿Por qué cambiamos de proveedor?
        Por que mudamos de fornecedor de energia?
        Perché abbiamo cambiato fornitore di energia?
        Почему мы сменили поставщика?
        我们为什么更换供应商
        なぜ供給元を変えたのですか
    """,
    "troubleshoot": """
        Der Drucker im Büro funktioniert nicht
        L'imprimante du bureau ne marche pas
        La impresora de la oficina no funciona
        A impressora do escritório não funciona
        La stampante dell'ufficio non funziona
        Принтер в офисе не работает
        办公室的打印机报错了
        事務所のプリンターが動かない
    """,
    "comparison": """
        Der Unterschied zwischen Postgres und SQLite in unserem Projekt
        La différence entre Postgres et SQLite pour notre projet
        La diferencia entre Postgres y SQLite para nuestro proyecto
        A diferença entre Postgres e SQLite para o nosso projeto
        La differenza tra Postgres e SQLite per il nostro progetto
        Разница между этими двумя базами данных
        这两个数据库有什么区别
        この二つのデータベースの違い
    """,
}

QUESTIONS: Mapping[IntentName, str] = {
    "how-to": """
        How do I deploy to staging?
        how to rotate the API keys
        How can we speed up the test suite?
        How should I name a migration?
        how do you run the linter locally
        steps to reproduce the release
        show me how to add a new endpoint
        Can you show me how we seed the database?
        What are the steps to onboard a new house?
        what is the best way to paginate results
        What's the recommended way to write a migration?
        is there a way to skip the e2e tests
        walk me through the release process
        explain how to set up the dev environment
        hey, how do I make sourdough starter
        Tell me how to bake the lemon cake
        instructions for descaling the coffee machine
        what's the command to restart the worker
        I forgot the details: how do I connect to the VPN?
    """,
    "location": """
        Where is the config file?
        where are the database credentials stored
        Where's our style guide?
        Which file defines BOOKING_TIMEOUT_MS?
        which module handles refunds
        what file has the retry logic
        where can I find the onboarding docs
        where do we keep the TLS certificates
        path to the nightly backup
        What is the URL of the staging dashboard?
        what's the path of the kiosk log
        in which folder are the SQL files?
        Where is reserveSlot implemented?
        where to find the invoices
        link to the design doc
        where does Anna live
        Where did we decide to drop the ORM?
        Where did Melanie go camping?
        where should we go for dinner
        which table holds the refunds
        Do you know where the spare key is kept? Where is my passport?
    """,
    "explanation": """
        Why did we choose Postgres?
        why do we use Redis Streams
        Why not use an ORM?
        why not
        What is the reason for the 30 second limit?
        what was the rationale behind ADR 7
        explain the hold mechanism
        Could you explain the slot overlap query?
        how come the week starts on Sunday
        What does ERR_SLOT_STALE mean?
        what does releaseHold do
        How does the cache work?
        how is authentication implemented
        rationale for feature flags
        Tell me why Anna left the company
        what's the purpose of the jobs table
        Why do we retry on error 500?
        why did we pick Vue instead of React
        what is meant by a house
    """,
    "troubleshoot": """
        why is the build failing?
        Why does the login page crash on Safari?
        Why won't the kiosk start?
        login returns error 500
        the payment webhook is not working
        kiosk doesn't work after the update
        cannot connect to the database
        Traceback (most recent call last): File "main.py"
        TypeError exception in reserve.ts
        how do I fix the flaky checkout test
        how to debug memory leaks
        fix the broken link on the home page
        deploy fails with exit status 137
        requests are timing out
        what's wrong with the nightly job
        what caused the outage in March
        connection timeout when calling Stripe
        known bugs of the booking form
        The printer is broken again
        Error: listen EADDRINUSE
        the import failed yesterday
        stack trace from the worker
        error when saving a booking
        problems with the card reader
        when did the login crash
    """,
    "comparison": """
        Redis vs Memcached
        Postgres versus MySQL for job queues
        What's the difference between a hold and a booking?
        differences between staging and production
        compare Vue and React
        is Redis Streams better than a jobs table
        Which is better, tabs or spaces?
        Redis or Postgres, which did we pick?
        Should we use Fastify or Express?
        pros and cons of monorepos
        How does plan A compare to plan B?
        how do the two kilns differ
        what are the advantages of SQL files over an ORM
        which one is faster, npm or pnpm?
    """,
    "general": """
        how many tests are there
        How old is Anna?
        how long does the e2e suite take
        How much does a slot cost?
        How are you?
        how about lunch tomorrow
        How did you meet Anna?
        How do you feel about the move?
        What is Anna's favourite colour?
        When did we release 1.4.2?
        who owns the kiosk
        booking timeout
        What is the default timeout?
        What is the error budget for March?
        error handling in the api
        The team agreed on weekly reviews.
        Anna is more than happy with it
        whereas the others left
        the prefix of all routes
        what should I buy for Tom's birthday
        whose turn is it
        What cause did the charity run support?
        What document formed the Parliament of Victoria?
        What did Tom do on Sunday?
        a famous problem in graph theory
        What did Caroline research?
        x
    """,
}
TABLE = [(line.strip(), name) for name, lines in QUESTIONS.items() for line in lines.splitlines() if line.strip()]


def test_the_table_is_large() -> None:
    assert len(TABLE) >= 80
    assert len({question for question, _ in TABLE}) == len(TABLE)


@pytest.mark.parametrize(("question", "name"), TABLE)
def test_what_a_question_is_after(question: str, name: IntentName) -> None:
    found = detect(question)
    assert found.name == name
    assert (found.confidence == 0) == (name == "general")


@pytest.mark.parametrize(
    ("question", "confidence"),
    [
        ("How do I deploy to staging?", 0.9),  # the cue begins it
        ("please, how do I deploy to staging?", 0.9),
        ("We have a new cluster. How do I deploy to it?", 0.6),  # somewhere
        ("error when saving a booking", 0.4),  # one word
        ("where is the config file", 0.9),
        ("where does Anna live", 0.4),  # a person, and nothing of the project
        ("Why not?", 0.6),  # perhaps it proposes something
        ("when did the login crash", 0.4),  # after a time
        ("how many of them fail with an exception", 0.4),
        ("Redis vs Memcached", 0.9),  # has its place in the middle
        # Two intents: a third of the weaker one is taken away.
        ("Why did we fix the version?", 0.7),  # why .9, "fix the" .6
        ("Why do we log a failure?", 0.77),  # why .9, "failure" .4
        ("Redis vs Memcached: which error is that", 0.77),
        ("How do I deploy? It fails.", 0.7),  # how .9, "fails" .6
        ("why is the build failing?", 0.6),  # trouble with a "why", .9 and .9
    ],
)
def test_confidence(question: str, confidence: float) -> None:
    assert detect(question).confidence == pytest.approx(confidence, abs=0.006)


@pytest.mark.parametrize(
    "question", ["HOW DO I DEPLOY?", "how  do\n I deploy", "  How do I deploy  ", "how do i deploy!"]
)
def test_case_and_spaces_do_not_matter(question: str) -> None:
    assert detect(question) == Intent("how-to", 0.9)


def test_curly_apostrophes_are_apostrophes() -> None:
    assert detect("What’s the difference between them") == detect("What's the difference between them")
    assert detect("it doesn’t work").name == "troubleshoot"


@pytest.mark.parametrize("text", ["", " ", "?", "\x00", "\ud800", "'", "how", "where", "İ why", "how to" * 10_000])
def test_strange_texts(text: str) -> None:
    assert detect(text).name in get_args(IntentName)


CUES = ["how", "do", "I", "to", "where", "is", "the", "why", "not", "error", "fix", "vs", "or", "which", "what", "does"]


@given(st.one_of(st.text(), st.lists(st.sampled_from([*CUES, "Anna", "?", ".", ",", "’s"])).map(" ".join)))
def test_any_text_has_an_intent(text: str) -> None:
    found = detect(text)
    assert found.name in get_args(IntentName)
    assert 0 <= found.confidence <= 0.9
    assert (found.confidence == 0) == (found.name == "general")
    assert detect(text) == found
    assert detect(f"  {text}\n")[0] == found[0] or len(text) + 2 > intent.READ_CHARS_MAX


@pytest.mark.parametrize(
    "word", ["why is ", "how do ", "what does ", "please tell me ", "or ", "where is a", "error ", "'"]
)
def test_a_hostile_text_takes_no_longer_than_its_beginning(word: str) -> None:
    beginning = Repeated(word)(intent.READ_CHARS_MAX)
    assert_linear(detect, Repeated(word), intent.READ_CHARS_MAX)
    assert_takes_less(2, detect, beginning, beginning * 2_000)


def test_weights_are_of_known_intents_and_cannot_be_changed() -> None:
    assert set(NAMESPACE_WEIGHTS) == set(get_args(IntentName))
    assert NAMESPACE_WEIGHTS["general"] == {}
    assert NAMESPACE_WEIGHTS["troubleshoot"] == {"blockers": 1.015, "learnings": 1.01, "testing": 1.005}
    assert all(weight > 1 for weights in NAMESPACE_WEIGHTS.values() for weight in weights.values())
    with pytest.raises(TypeError):
        NAMESPACE_WEIGHTS["general"] = {"apis": 2.0}  # type: ignore[index]


def test_nothing_is_compiled_before_it_is_needed() -> None:
    code = "from nacre.query import intent; print(intent._compiled.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "0"


@pytest.mark.parametrize(
    ("name", "question"),
    [(name, each.strip()) for name, text in ELSEWHERE.items() for each in text.strip().splitlines()],
)
def test_questions_in_other_languages(name: IntentName, question: str) -> None:
    found = detect(question)
    assert (found.name, found.confidence >= 0.6) == (name, True)
