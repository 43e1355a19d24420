"""Romanian."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Romanian",
    stemmer="romanian",
    stop_words="""
a abia acea aceea aceia acel acela acelea acest acesta aceste acolo acum adica ai aia aici aiurea al ala ale
alt alta alte altfel alti altii altul am anume apoi ar are as asa asta astazi astfel asupra atare atat atata
atatea atatia ati atit atita atitea atitia atunci au avea avem avut azi b ba bine c ca cam cand capat care
careia carora caruia cat cata cate cateva cativa catre ce cea ceea cei cel cele celor ceva chiar ci cind cine
cineva cit cita cite citeva citi citiva cu cui cum cumva când cât câte câtă câți d da daca dar dat de decat
deci decit deja desi despre din dintr dintre doar dupa ea ei el ele era este eu exact f face fara fata fel fi
fie foarte fost geaba h i ia iar iara ii il imi in inapoi inca incat incit insa intr intre isi iti j k l la le
li lor lui m ma mai mare mi mod mult multa multe multi n ne ni nici nimeni nimic niste noi nostri nou noua nu
numai o or ori orice oricum p pai pana parca pe pentru peste pina plus prea prin putini r s sa sai sale sau se
si sint sintem spre sub sunt suntem sus t te ti toata toate tocmai tot toti totul totusi tu u ul ului un una
unde unei unele uneori unii unor unui unul v va voi vom vor vreo vreun în și
""",
)
