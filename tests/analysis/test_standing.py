"""Lasting preferences and instructions are recognised; events, systems, questions and code are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import Repeated, assert_linear
from nacre.analysis.standing import CHARS_MAX, WORDS_MAX, standing_kind

PREFERENCES = """
I prefer tea over coffee.
I'd rather take the train than fly.
I would rather be called in the evening than in the morning.
Mara prefers a window seat.
My wife prefers dark chocolate.
Katrin (my boss) prefers short mails.
We prefer composition over inheritance.
I hate coriander.
I can't stand loud music in restaurants.
I cannot stand open-plan offices.
Jonas hates being interrupted.
She can't stand small talk.
I really don't like olives.
I love hiking in the mountains.
Ana: I love pottery
Tom: i like spicy food, the hotter the better
Lea loves horses.
My daughter loves dinosaurs and volcanoes.
Grandma enjoys crossword puzzles.
I'm a big fan of detective stories.
I'm not a fan of surprise parties.
Priya is really into bouldering.
My favourite colour is green.
Favorite tea: Darjeeling
I'm allergic to peanuts.
I am severely allergic to bee stings.
Milo is allergic to cats.
My son is allergic to penicillin and amoxicillin.
Allergic to shellfish!
Ben: allergic to nickel
I have a nut allergy.
Dov has a gluten intolerance.
Jonas was diagnosed with coeliac disease in autumn.
She suffers from asthma.
I'm lactose intolerant.
I'm vegetarian.
Solveig is vegan.
My parents are vegetarian, but they eat eggs.
I'm a vegetarian since 2010.
I keep kosher.
Amir eats halal.
I'm pregnant, due in May.
My father is diabetic.
I have type 2 diabetes.
I'm on a low-carb diet.
Prof. Haugen is red-green colour-blind.
I'm left-handed.
My colleague Ines is deaf.
I'm dyslexic, so long texts are hard for me.
I use a wheelchair.
Mireille has been using a wheelchair since her accident.
Lotta gets car sick in the back.
I'm afraid of flying.
Ines is terrified of spiders.
I don't eat meat.
I don't drink alcohol.
I never eat breakfast.
We don't eat pork.
Priya doesn't eat meat or fish, for religious reasons.
He doesn't drink.
I don't fly any more.
I no longer drink coffee.
I can't eat gluten.
Unfortunately I can't have dairy.
Yusuf mustn't do night shifts.
I don't work on Fridays.
Graça doesn't work Fridays since her contract change.
I always take the aisle seat.
I only use split keyboards.
I always write dates with the month in words.
Tadesse only reads mail in the morning.
She never wears wool.
Aisle seat, always.
My budget is 80 euros.
Our budget for the trip is around 900 €.
I want to spend at most $50.
We don't want to spend more than 40 francs.
Sam (they/them) joined the design team.
Leonie wants change requests as a table.
I'm an early bird.
Ich bevorzuge kurze Antworten.
Ich mag keine Oliven.
Meine Frau mag keinen Koriander.
Ich hasse Zwiebeln.
Lea liebt Pferde.
Ich bin Vegetarierin.
Ich bin allergisch gegen Nüsse.
Jonas hat eine Nussallergie.
Ich esse kein Fleisch.
Ich trinke keinen Alkohol.
Ich habe Flugangst.
Mireille sitzt im Rollstuhl.
Ich vertrage keine Laktose.
Ich fahre lieber mit dem Zug.
Meine Lieblingsfarbe ist Grün.
Je préfère le train.
Je suis végétarienne.
Je suis allergique aux noix.
Ma fille est allergique aux chats.
Je ne mange pas de porc.
Je déteste les olives.
J'adore la randonnée.
Je n'aime pas le café.
Élodie préfère les messages courts.
J'ai peur de l'avion.
Prefiero el té.
Soy vegetariana.
Soy alérgico a los cacahuetes.
Mi hija es alérgica a los gatos.
No me gusta el cilantro.
Me encanta el senderismo.
No como carne.
Odio las reuniones largas.
Lucía prefiere correos cortos.
Uso silla de ruedas.
"""

INSTRUCTIONS = """
Always answer in Swedish.
Never push to main.
Never send invoices before the 5th.
Please always use the metric system.
Please never ping Sam on Slack after 18:00, he has the twins then.
Always use type hints.
Kestrel repo: never commit generated files.
Call me Max.
It's Maximiliane on paper only. Call me Max.
My pronouns are she/her.
Everybody knows me as Chi; I go by Chi.
Don't schedule anything before 10.
Don't put anything in my calendar before 8:30, I take the kids to school.
Please don't call me at work.
Do not use emojis in mails to customers.
Carmen works nights at the hospital: don't phone her in the morning, text instead.
Reply in German.
Please answer me in simple English.
Write to him in French.
Keep it short.
Keep your answers under 100 words.
Please keep it under 80 euros.
Be concise.
Short answers only, please.
Use tabs.
Use tabs, not spaces.
Use British spelling.
Please use metric units.
From now on, no meetings on Mondays.
From now on please sign with my full name.
Going forward, use conventional commits.
Sign all mails with my first name from now on.
No meetings on Friday.
No calls before 9, please.
No caffeine for me after two in the afternoon.
No emojis.
No AI-generated images in client work.
Please show me distances in km.
When you draft e-mails to the landlord, be formal.
House rule: shoes off at the door.
No screens before she is fourteen. No exceptions.
Whoever takes the children must have a booster seat.
Nothing with nuts may be brought to school.
Antworte mir auf Deutsch.
Bitte immer duzen.
Nenn mich Max.
Keine Termine vor 10 Uhr.
Bitte keine Anrufe am Wochenende.
Ab sofort bitte nur noch per Mail.
Fass dich kurz.
Immer metrische Einheiten verwenden.
Réponds toujours en français.
Appelle-moi Chloé.
Pas de réunion le vendredi.
Ne m'appelle jamais au travail.
Dorénavant, réponds en anglais.
Tutoie-moi.
Sois bref.
Responde siempre en español.
Llámame Paco.
De ahora en adelante, no uses emojis.
Sin reuniones los viernes.
Nunca reserves vuelos de noche.
Sé breve, por favor.
"""

OTHERS = """
The job never finishes.
nginx always restarts after a deploy.
We always lose against them.
The API always returns 500 on Mondays.
The cache prefers recent entries.
Postgres prefers an index scan here.
Git hates large binary files.
The build is always red on Friday.
Never got an answer from the bank.
Never mind.
Never give up!
Never heard of it.
Always a pleasure!
Always good to see you.
It never rains in July.
The server refuses connections from outside.
Kestrel only uses httpx.
Fathom never reads the environment.
The client never sends a body with GET.
The user never sees this page.
Lasagne is vegan, the rest is not.
No exceptions were raised in the nightly run.
We pay more than last year for hosting.
I can't use the printer.
I can't take it anymore.
I can't eat another bite.
I only need two minutes.
I have an appointment at the allergy clinic.
I don't take it personally.
Don't buy milk, there is plenty.
Uncle Ravi has a new coat, he hates it.
Mr. Ortega wants the contract as a PDF.
The lift doesn't work on Sundays.
The new phone can't take calls in the cellar.
The tests don't use the network.
The service only takes requests over TLS.
The importer never reads the header.
I liked the film yesterday.
I loved the concert.
I hated school as a child.
I used to love skiing.
I love that!
I love it here.
I love how it turned out.
I like your idea.
I like the new office.
I'd love to come on Saturday.
I would like two tickets for tomorrow.
I'd rather go on Tuesday this week.
I prefer the first draft.
I'd rather not say.
I'd rather show you a photo.
Doing something I love is awesome.
Do you prefer tea?
Should I always use tabs?
Are you allergic to nuts?
Is Priya vegan?
Can we call it Max?
Why do people hate coriander?
Call me back when you are there.
Call me tomorrow at nine.
Call me if the train is late.
Call me Monday after lunch.
Don't worry about the invoice.
Don't forget the milk.
Don't use it yet, the branch is broken.
Don't send the letter until Dana has signed.
Don't call him today, he is ill.
Don't touch that!
Please send the report by Friday.
Please find the invoice attached.
Please don't deploy today.
Please note the new address.
Keep up the great work!
Keep me posted.
Keep the receipt for the warranty.
Use the side entrance tonight.
Use httpx instead of requests
Use the new endpoint for the login.
Add a retry to the uploader
Reply to the landlord about the heating.
Write to the school about the trip.
Answer the ticket before lunch.
From now on the nightly export runs at 04:30.
From now on the shop is closed on Mondays.
In the future, cars will fly.
No problem.
No idea.
No errors in the log after the deploy.
No news from the vet.
No one came on Friday.
No coffee left, buy some.
No photos of the second house so far.
A vegan restaurant opened on Main Street.
The vegan lasagne was great.
Vegan burgers sold out at noon.
Halal butcher on Kottbusser Damm, open until 20:00.
Pregnant women should avoid raw fish.
Allergy season starts in March.
Research on nut allergy in children, 12 pages.
The wheelchair ramp is being repaired.
A wheelchair stands in the hall.
I'm afraid the server is down.
I'm afraid of losing the contract.
I'm afraid I can't come.
I'm sick of it.
She was vegetarian for two years.
I ate no meat last week.
I didn't eat breakfast today.
I didn't like the soup.
I can't come on Friday.
I can't find the key.
I can't wait to see you.
I don't know.
I don't think so.
I don't have time today.
I don't use the car this week.
I never knew that.
I never got the parcel.
I have never been to Rome.
I only saw the second half.
I always thought he was from Oslo.
Budget for team swag 2026: 600 euros, not spent yet.
The budget was 4,000 euros.
The ticket costs at most 80 euros.
Lea liked the present.
Ben loves it here.
Everyone loves pizza.
Nobody likes the new logo.
People prefer short forms.
Customers hate waiting.
The kids loved the zoo.
Seeing everyone there must have been really cool.
Nothing may have been lost.
Release 4.0 went live Monday 23:10, no rollback.
Dentist: night guard fits, check in August
PORT=8080
retries = never
if always: return None
def prefers(user): return user.tea
# always run this first
// never call this directly
$ git push --force
2026-03-01 12:00:03 ERROR connection refused, never retry
INFO worker always idle
[resolved] ReplicaLag > 120s, never seen before
SELECT * FROM users WHERE vegan = true;
user.always() => true
logger.info("I prefer tea");
"Never Let You Go" is the first single of the band.
Der Job läuft nie durch.
Nginx startet immer neu.
Ich mochte den Film gestern.
Ich mag das neue Büro.
Wir verlieren immer gegen sie.
Nie wieder!
Bitte schick mir den Bericht bis Freitag.
Kein Problem.
Keine Ahnung.
Keine Fehler im Log.
Bist du Vegetarier?
Ein veganes Restaurant hat aufgemacht.
Der Server antwortet immer mit 500.
Heute esse ich kein Fleisch.
J'ai aimé le film hier.
Le serveur redémarre toujours.
Pas de problème.
Es-tu végétarien ?
Je n'aime pas cette idée.
Demain je préfère le bus.
Appelle-moi demain.
El servidor siempre reinicia.
Me gustó la película ayer.
No hay problema.
¿Eres vegetariano?
No me gusta esta idea.
Llámame mañana.
Hoy no como carne.
"""


def listed(texts: str) -> list[str]:
    return [each for each in texts.splitlines() if each]


@pytest.mark.parametrize("text", listed(PREFERENCES))
def test_a_preference(text: str) -> None:
    assert standing_kind(text) == "preference"


@pytest.mark.parametrize("text", listed(INSTRUCTIONS))
def test_an_instruction(text: str) -> None:
    assert standing_kind(text) == "instruction"


@pytest.mark.parametrize("text", listed(OTHERS))
def test_neither(text: str) -> None:
    assert standing_kind(text) is None


def test_one_sentence_of_a_few_is_enough() -> None:
    assert standing_kind("We met at the fair. I’m allergic to nuts, by the way. See you soon?") == "preference"
    assert standing_kind("I hate long mails. Keep it short.") == "instruction"


def test_a_long_text_is_a_report() -> None:
    assert standing_kind("I'm vegan. " + "The meeting began at nine and ended at ten. " * 2) == "preference"
    assert standing_kind("I'm vegan. " + "The meeting began at nine and ended at ten. " * 9) is None
    assert standing_kind("I'm vegan " + "and " * 70) is None
    assert standing_kind("I'm vegan" + " " * CHARS_MAX) is None


words = st.sampled_from(
    [
        "I",
        "i'm",
        "never",
        "always",
        "don't",
        "please",
        "call",
        "me",
        "my",
        "no",
        "prefer",
        "love",
        "Ana",
        ":",
        ".",
        ",",
        "(",
        "allergic",
        "to",
        "use",
        "in",
        "German",
    ]
)


@given(st.text(max_size=CHARS_MAX) | st.lists(words).map(" ".join))
def test_any_text_has_an_answer(text: str) -> None:
    assert standing_kind(text) in (None, "preference", "instruction")
    assert standing_kind(text) == standing_kind(text.replace("'", "’"))


@pytest.mark.parametrize("unit", ["I ", "Ana and ", "never, ", "my ", "no a ", "(", "please don't ", "A-", "I really "])
def test_time_is_linear(unit: str) -> None:
    """Up to the longest text that is read, which has so many characters and words."""
    size = min(CHARS_MAX, len(unit) * (WORDS_MAX - 1) // len(unit.split()))
    assert_linear(standing_kind, Repeated(unit, end=" prefers"), size)
