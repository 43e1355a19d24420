"""French."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="French",
    stemmer="french",
    intents={
        "troubleshoot": r"\b(?:erreurs?|plante|panne|échoue|ne (?:marche|fonctionne|démarre) (?:pas|plus))\b",
        "comparison": r"\bdifférences? entre\b|\bpar rapport à\b|\b(?:mieux|meilleure?s?|pire|plus rapide) que\b",
        "how-to": r"^comment (?:puis-je|peut-on|faire|dois-je|on|je|\w+er)\b",
        "location": r"^où (?:est|sont|se trouve|se trouvent|trouver|puis-je)\b|^dans quel (?:fichier|dossier)\b",
        "explanation": r"^pourquoi\b",
    },
    stop_words="""
a ai aie ait alors après as attendu au aucun aura auraient aurait auront aussi autre autres aux avaient avais
avait avant avec avoir avons ayant bien car ce ceci cela ces cet cette ceux chaque chez ci combien comme
comment concernant contre dans de dedans dehors depuis derrière des dessous dessus deux devant devers dire
doit donc dont du durant dès elle elles en encore entre envers environ es est et eu eux excepté fais fait font
hormis hors il ils je jusque juste la le les leur leurs lors lui là lès ma maintenant mais malgré me mes moi
moins mon moyennant même ne ni nos notre nous nouveau on ont ou outre où par parce parmi pas passé pendant
personne peu peut plein plus plusieurs pour pourquoi puis quand que quel quelle quelles quels qui quoi sa sans
sauf se selon sera seraient serait seront ses seulement si sien soi soit son sont sous suis suivant sur ta te
tellement tels tes toi ton touchant tous tout toutes trop très tu un une vers via voici voilà vont vos votre
vous vu y à ça ès étaient étais était étant être
""",
)
