"""Words that are ordinary in their language. A query may have them whatever the store has: they are no misspellings.

English words are the whole words among the word pieces of the embedder that ships with Nacre. They were learned from
books and an encyclopedia, so common misspellings are not among them. First names are: `sara` may be a misspelled
Sarah, so names do not count. Listed here are English words that the vocabulary lacks, and the words that German, French
and Spanish questions are made of.
"""

from __future__ import annotations

from functools import cache

from nacre.analysis import stopwords
from nacre.errors import EmbedderUnavailable

# All lists are without accents, as tokens are. These are words of work and daily life that the vocabulary lacks.
_ENGLISH = """
adapter adapters admin admins agendas airbnb allergies allergy anniversaries apis appraisal appraisals auth
authenticate authorize avocado babysitter backend backlog benchmark benchmarks birthdays blogging bluetooth bookings
brainstorm brainstorming brunch bugfix cached caching cappuccino carpool changelog charger chatbot checklist
checklists checkout commute commuting config configs configure coupon coupons crochet dashboards dataset datasets
daycare deadlines debug debugged debugging decrypt deliverable deliverables dependencies deployments deploys
detergent discounts dishwasher downgrade earbuds emoji encrypted endpoint endpoints espresso firewall fixes followup
frameworks freelancer freelancers freezer frontend gluten hashtag hdmi headphones headset hobbies hoodie hostname
hotfix houseplant houseplants inbox interns invoice invoices itinerary kittens lactose landlady laptops lasagna
latency latte linter localhost localisation logger login logins logout mailbox metrics middleware milestones
misplaced namespace namespaces offboarding offline onboarding overdue parser passcode passwords paycheck paycheque
pediatrician permissions pilates pipelines playlist playlists plugin plugins podcasts postpone prescriptions
prioritise prioritize prioritized puppies queries quotation readme rebase recruiter recruiters refactor refactored
refactoring refund refunds reimbursement reminders renewals repo repos reschedule rescheduled retries retry roadmap
rollback rollbacks roommates router runtime schema schemas screenshot screenshots selfie shampoo sightseeing signup
slideshow smoothie souvenir souvenirs spreadsheet spreadsheets sprints stakeholder standup subdomain subscriptions
summaries summarise summarize sunscreen sushi takeaway takeout templates thermostat throughput timeout timeouts
timesheet toddler todo tokens toothbrush toothpaste tutorial tutorials undecided unsubscribe upload uploads username
usernames vaccinated vaccination vegan vlog voicemail voucher vouchers warranties warranty webhook webhooks webpage
whiteboard wifi workflow workflows workouts yoghurt yogurt
"""
_GERMAN = """
aber alle allem allen alles also anderen anders antwort arbeit arbeiten auch bald beide beiden beim bekannt bekommen
besser beste bitte bleiben brauche brauchen bringen dabei dafur damals damit danach dann daran darauf darf darum
dass davon davor dazu deine denn deren deshalb dessen dich diese diesem diesen dieser dieses dinge doch dort durch
eben eigentlich einfach einige einmal ende endlich erst erste ersten etwa etwas euch euer eure fangen fast finde
finden frage fragen fruher funf ganz geburtstag gegen gehen gehort geht gekauft gemacht genau genug gerade gern
gesagt gestern getan gewesen gibt ging glaube gleich gross gute guten habe haben hast hatte hatten heissen heisst
heute hier hinter hinweis ihnen ihre ihrem ihren immer inzwischen jahr jahre jede jedem jeden jeder jemand jetzt
kann kannst kaufen kaum kein keine keinen kennen kleine kommen kommt konnen konnte lange langsam lassen leben letzte
letzten letzter leute lieblings liegt mache machen macht manche mehr mehrere mein meine meinem meinen meiner meist
mich minuten mittag mittwoch monat morgen muss mussen musste nachher nachste nachsten nachster name namen naturlich
neben nehmen neue neuen neuer neues nichts niemand noch oben oder ohne paar recht richtig sage sagen sagt sagte
schlecht schliesslich schnell schon schreiben sehen sehr seid sein seine seinem seinen seiner selbst setzen sich
sieht sind sofort sogar solche soll sollen sollte sondern sonst spat spater stand stehen steht stelle stunde stunden
suche suchen tagen trotz uber uberall ubrigens unser unsere unserem unseren unter viel viele vielen vielleicht vier
voll vorher wahr wahrend wann ward waren warst warum weil weiter welche welchem welchen welcher welches wenig
weniger wenn werden wird wirklich wissen woche wochen woher wohin wohl wohne wohnen wohnt wohnte wollen wollte
worden worum wurde wurden zeigen zeit ziemlich zuerst zuletzt zuruck zusammen zwei zwischen
"""
_FRENCH = """
achete afin aime aimer ainsi aller alors annee annees appelle apporter apres assez aucun aujourd aujourdhui aura
aussi autant autre autres avaient avais avait avant avec avez avoir avons beaucoup besoin bien bientot bonjour bonne
cela celle celles celui cent certain certains cette ceux chaque chez chose choses cinq combien comme comment connais
connaitre contre dans date deja demain depuis dernier derniere dernieres derniers derriere dessus deux devait devant
devons devrait dire disait dois doit doivent donc donner dont dormir elle elles encore enfin ensuite entre environ
essayer etaient etais etait etre exemple faire fait faites faut fera fois font general grand grande habite habiter
heure heures hier homme jamais jour jours jusque juste laquelle lequel lesquels leur leurs lieu loin long longtemps
lors lorsque maintenant mais maniere matin meilleur meme memes merci mettre mien mieux moins mois moment montrer
mots nombre notre notres nous nouveau nouveaux nouvelle nouvelles parce pareil parfois parle parler part partie
partir partout passe pendant pense penser personne peut peuvent peux plein plus plusieurs plutot pour pourquoi
pourrait pouvait pouvez pouvoir prefere premier premiere prendre presque prochain prochaine propre puis puisque
qualite quand quel quelle quelles quelque quelques quels question quoi raison rappelle rien sais sait sans savez
savoir selon semaine semaines sera seront seul seule seulement sinon soir sommes sont sous souvent suis suivant
sujet surtout tandis tant tard tellement temps toujours tous tout toute toutes travail travailler tres trois trop
trouve trouver vais vers veut veux vient voici voila voir vois vont votre voulait vouloir voulu vous vrai vraiment
"""
_SPANISH = """
ademas adonde ahora algo alguien alguna algunas alguno algunos alla alli alto amigo anos antes aquel aquella
aquellos aqui asunto aunque ayer bajo bastante bien buena buenas bueno buenos buscar cada casi cerca cierto cinco
claro como compro conmigo conocer contra cosa cosas creo cual cuales cualquier cuando cuanta cuantas cuanto cuantos
cuatro cumpleanos dado debe deben deberia debo decir dejar demasiado dentro desde despues detras dias dice dices
dicho dijo donde durante ella ellas ellos encima encontrar entonces entre eran eres esas escribir esos esta estaba
estaban estado estamos estan estar estas este estos estoy estuvo fecha final forma fuera fueron gente gracias gran
grande gusta haber habia habian habla hablar habra hace hacemos hacen hacer hacia hago hasta haya hecho hemos
hicimos hizo hora horas igual incluso jamas junto lado largo lejos llama luego lugar manana manera mejor menos
mientras misma mismo mismos momento mucha muchas mucho muchos muestra nada nadie necesita necesito ningun ninguna
ninguno noche nombre nosotros nuestra nuestras nuestro nuestros nueva nuevas nuevo nuevos numero nunca otra otras
otro otros palabra para parece parte pasa pasado pero persona personas podemos poder podia poner porque posible
prefiere primer primera primero proxima proximo proyecto puede pueden puedes puedo pues puesto querer queria quien
quienes quiere quieren quiero quizas razon respuesta reunion sabe saber sabes segun seguro semana semanas sera seria
siempre siendo sigue sino sobre solo somos tambien tampoco tanto tarde tema tendria tenemos tener tengo tenia tiempo
tiene tienen tienes toda todas todavia todo todos trabajo tres tuvo ultima ultimo ultimos unas unos usted ustedes
vamos varias varios veces venir verdad vida viene vive vivir vosotros vuestra vuestro
"""
# Function words of other languages, and what the lists above lack.
_FUNCTION_WORDS = """
come degil degli dove eine einem einen einer gdzie icin inte jest jullie kiedy komt laat naar nach nasil nell nella
nerede nicht niet onde oraz przez qual quale quando quante quem seit siamo sinds sono till voor waar wanneer wordt
zaman zijn
"""
_NAMES = """
aaron abigail adam adrian agnes alan albert alex alexander alexandra alexis alfred alice alicia alison allan allen
allison amanda amelia andrea andreas andrew andy angela anita anna anne annie anthony antoine antonio arnold arthur
ashley astrid audrey barbara beatrice benjamin bernard beth betty beverly bianca bjorn bonnie boris brandon brenda
brett brian bridget britney bruce bruno bryan caitlin calvin cameron camille carl carla carlo carlos carmen carole
caroline carolyn carrie catherine cathy cecilia cedric celia charles charlie charlotte cheryl chloe chris christina
christine christoph christopher cindy claire clara clark claude claudia clifford clive colin connie connor conrad
courtney craig cristina curtis cynthia damian damien dana daniel daniela danielle danny darren dave david deborah
debra dennis derek diana diane diego dieter dmitri dominic donald donna dora doris dorothy doug douglas duncan dylan
eddie edgar edith edmund eduardo edward edwin eileen elaine eleanor elena elias elijah elisa elisabeth elise
elizabeth ella ellen elliot elliott elsa emil emilia emily emma enrique eric erica erik erika erin ernest ernst
esther ethan eugene evan evelyn felix fernando fiona floyd frances francesca francesco francis francisco francois
franz fred frederick friedrich gabriel gareth gary gavin geoff geoffrey george gerald gerard gerhard gilbert gina
giovanni giuseppe gloria gordon graham greg gregory greta guillaume gustav gwen hannah hans harold harriet harry
harvey hector heidi heinrich helen helena henri henry herbert herman hilary howard hugh hugo ibrahim igor ingrid
irene isaac isabel isabella ivan jackie jacob jacqueline jacques jake james jamie jane janet janice jared jason
javier jeanne jeff jeffrey jennifer jenny jeremy jerome jerry jesse jessica jill jimmy joan joanna joanne joel johan
johann johanna johannes john johnny jonas jonathan jorge jose josef joseph josephine josh joshua joyce juan judith
judy julia julian juliana julie juliet jurgen justin kaitlyn karen karin karl kate katherine kathleen kathryn kathy
katie katrina keith kelly kenneth kenny kevin kimberly klaus konrad kristen kristin kristina kurt kyle lana larry
lars laura lauren laurence laurent lawrence leah leon leonard leslie lewis liam lillian linda lindsay lisa lois
lorenzo lori lorraine louis louise lucas lucia lucy luigi luis luke luther lydia madeleine maggie malcolm manuel
marc marcel marcia marco marcos marcus margaret margot maria marian mariana marie marilyn mario marion marjorie
markus marlene martha martin martina marvin mary mathias matilda matteo matthew matthias maureen maurice maya megan
melanie melissa meredith michael michel michele michelle miguel mike mikhail milton miranda miriam mitchell mohamed
mohammed molly monica moritz muhammad murray myra nadia nancy naomi natalia natalie natasha nathan nathaniel neil
nicholas nicola nicolas nicole nigel nikolai nina noah noel nora norman oleg olga oliver olivia omar oscar oskar
otto pablo pamela paolo patricia patrick paul paula pauline pedro peggy penelope perry peter petra phil philip
philippe phillip phoebe pierre priscilla rachel ramon raphael raul raymond rebecca rene ricardo richard ricky rita
robert roberta roberto rodney rodrigo roger roland rolf ronald ruben rudolf rudy rupert russell ruth ryan sabine
sabrina samantha samuel sandra sara sarah scott sean sebastian sergei sergio seth shane shannon shaun shawn sheila
shirley sidney siegfried simon simone sofia sonia sophia sophie spencer stanley stefan stella stephanie stephen
steve steven stewart stuart susan susanna suzanne sven sylvia tamara tanya tara tatiana teresa theodor theodore
theresa thomas tiffany timothy tina tobias todd tommy toni tracy travis trevor tristan tyler ulrich ursula valerie
vanessa vera veronica vicki viktor vincent vivian vladimir walter wanda wendy werner wesley wilhelm willem william
willie wolfgang xavier yves yvonne zachary
"""


def is_listed(word: str) -> bool:
    """Whether a folded word is listed here as ordinary, or is an English stop word. Needs no file."""
    return word in stopwords.WORDS or word in _listed()


def is_ordinary(word: str) -> bool:
    """Whether a folded word is ordinary, and no first name."""
    return is_listed(word) or (word not in _first_names() and _is_english(word))


@cache
def _listed() -> frozenset[str]:
    return frozenset(f"{_ENGLISH} {_GERMAN} {_FRENCH} {_SPANISH} {_FUNCTION_WORDS}".split())


@cache
def _first_names() -> frozenset[str]:
    return frozenset(_NAMES.split())


def _is_english(word: str) -> bool:
    from nacre.runtime import onnx_models  # most searches need no vocabulary for this

    try:
        vocabulary = onnx_models.load_word_pieces(
            onnx_models.EMBEDDER / onnx_models.VOCABULARY, fallback="search by keyword"
        )
    except EmbedderUnavailable:  # a damaged installation has more suggestions
        return False
    return vocabulary.has_word(word)
