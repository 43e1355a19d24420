"""Swedish."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Swedish",
    stemmer="swedish",
    endings=(("eln", "l"), ("el", "l"), ("ordet", "ord"), ("orden", "ord"), ("an", "a")),
    linking=("", "s"),
    stop_words="""
adjö aldrig alla allas allt alltid alltså andra andras annan annat att av bakom bara behöva behövt beslut
bland blev bli blir blivit bort borta bra bäst bättre båda bådas dag dagar dagen de del delen dem den deras
dess det detta dig din dina dit ditt dock du där därför då efter elfte eller elva en enkel enkelt enkla enligt
er era ert ett fanns fem femte femtio femton fick fin finnas finns fjärde fler flera flesta fram från fyra
fyrtio få får fått för före förlåt förra första genast genom gick gjorde gjort god goda godare godast gott
gälla gäller gällt gärna gå går gått gör göra ha hade haft han hans har heller hellre helst helt henne hennes
hit hon honom hundra hur här hög höger högre högst i ibland idag igen igår in inför inga ingen inget innan
inne inom inte inuti ja jag kan kanske kom komma kommer kommit kr kunde kunna kunnat kvar legat ligga ligger
lika lilla lite liten litet länge längre längst lätt långt man med mellan men mer mera mest mig min mina
mindre minst mitt mot mycket många måste möjlig ned nedre nej ner ni nio nionde nittio nitton nog noll nr nu
nummer när nästa någon något några och också ofta oftast olika olikt om oss på rakt redan rätt sade sagt samma
sedan senare senast sent sex sextio sexton sig sin sina sist sista siste sitt sju sjunde sjätte ska skall
skulle små smått snart som stor stora stort större störst säga säger sämre sämst så tack tidig tidigt till
tills tio tionde tjugo tjungo tolfte tolv tre tredje två under upp ur ursäkt ut utan ute vad var vara varför
varit varken vart vem vems vi vid vidare viktig vilka vilken vilket vill värre vår våra vårt än ännu är även
åtta åttio över överst övre
""",
)
