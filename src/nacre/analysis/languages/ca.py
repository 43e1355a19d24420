"""Catalan."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Catalan",
    stemmer="catalan",
    stop_words="""
a abans algun alguna algunes alguns altre amb ambdós anar ans aquell aquelles aquells aquí bastant bé cada com
consegueixo conseguim conseguir consigueix consigueixen consigueixes dalt de des dins el elles ells els en ens
entre era erem eren eres es estan estat estava estem esteu estic està ets fa faig fan fas fem fer feu fi haver
i inclòs jo la les llarg llavors mentre meu mode molt molts nosaltres o on per perquè però podem poden poder
podeu potser primer puc quan quant que qui quin quina quines quins què sabem saben saber sabeu sap saps sense
ser seu seus si soc solament sols som sota també te tene tenim tenir teniu teu tinc tot un una unes uns va
vaig van vosaltres és éssent últim ús
""",
)
