"""Finnish."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Finnish",
    stemmer="finnish",
    linking=("", "n"),
    stop_words="""
aika aikaa aikoo aina ainoa aion aivan ajan alas alla alle alta antaa antoi apu asia asiaa asian asiat asti
avun edes ehkä ei eikä eilen eivät eli ellei ellen ellet emme en ennen ensi ensin enää eri eräs eräät esi
esiin et eteen ette ettei että halua he hei heitä heti hyvin hyviä hyvä hyvät hyvää hän hänen hänet häntä ihan
ilman itse ja jo johon joina joita joka jokin joko joksi joku jolla jolle jolta jona jonka jonne joo jopa jos
jossa josta jota joten jotka jotta juuri jää kahta kai kaksi kauan kehen keinä keitä kenen kenet kerta ketkä
ketä kohti koko kolme koska kovin kuin kuinka kuka kukin kumpi kun kuten kuusi kyllä kyse liian liki lisää luo
lähes läpi me meitä melko menee menen menet meni menin menit mihin miksi mikä mille milloin millä miltä minkä
minne minua minun minut minä missä mistä miten mitkä mitä moi mones monet moni monta muita muka mutta muu muun
muut muuta myös myötä ne neljä niin niinä niitä noin noina noita nro nuo nyt näin näinä näitä nämä ohi ole
olen olet oleva oli olin olisi olit olivat olla ollut oma omaa omaan oman omat omia omien omiin on onkin onko
ovat pian pieni sama samaa saman samat sata sataa se sekä sen siinä siis siitä siksi sille sillä silti siltä
sinne sinua sinun sinut sinä siten sitä suuri taa taas tai takaa takia te teitä toki tosin tuhat tule tulee
tulen tulet tulin tulit tulla tuo tuon tuona tuota tykö tähän täksi tälle tällä tältä tämä tämän tänne tänä
tässä tästä täten tätä usea usein uuden uudet uusi uusia uutta vaan vai vain vasta vielä vieri viime viisi voi
voin voisi voit vuosi vähän yhden yhtä yhä yksi yksin yli ylös älä
""",
)
