"""Verbs in the past tense, in a text without accents, of all languages that times are read in.

Endings alone are not certain; they are asked for beside a time or an event that may be past or to come.
"""

from __future__ import annotations

PAST_TENSE = (
    r"\b(?:was|were|had|did|went|got|came|saw|took|made|said|told|gave|found|met|left|bought|ate|ran|won|lost|spent|"
    r"wrote|sent|paid|felt|held|kept|built|began|broke|brought|caught|chose|drank|drove|fell|flew|forgot|grew|heard|"
    r"knew|led|rode|sang|sat|shot|slept|sold|spoke|stood|swam|taught|thought|threw|woke|wore|became)\b|"
    r"\b(?!need|feed|speed|seed|exceed|proceed|indeed|excited|tired|interested|supposed|used|based|limited)[a-z]{2,}ed\b|"
    r"\b(?:war|waren|hatten?|wurden?|gab|ging|gingen|kam|kamen)\b|\b[a-z]*ge[a-z]{3,}(?:t|en)\b|"
    r"\b(?:unter|be|ver|ent|er)[a-z]{3,}(?:t|en)\b|"
    r"\b(?:ai|avons|avez|ont|suis|sommes|sont|etais|etait|etions|etaient|a|est)(?:-(?:je|tu|nous|vous|ils?|elles?|on|t-(?:il|elle|on)))?\s+"
    r"(?:\w+\s+)?"
    r"\w{2,}(?:e|es|ee|ees|i|is|it|u)\b|\b\w{2,}(?:amos|imos|aron|ieron)\b|"
    r"\b(?:que paso|ocurrio|sucedio|vino|llego|fui|fue|hice|hizo|hubo|dijo|estuve|estuvo|tuve|tuvo)\b|"
    r"\b(?:foi|foram|eram|fez|fizemos|fizeram|disse|disseram|teve|tiveram|houve|aconteceu|veio|ligou|comprou|decidiu|chegou|"
    r"decidimos|compramos|mudou|ficou)\b|\b(?:ho|hai|ha|abbiamo|avete|hanno|siamo)\s+(?:\w+\s+)?\w{2,}(?:at|ut|it|s|tt|rt)[oaie]\b|"
    r"\b(?:sono|e)\s+(?:stat|successo|andat|venut|arrivat|cambiat)\w*\b|\b(?:era|erano|fu|furono)\b|"
    r"\b[а-я]{2,}(?:л|ла|ло|ли|лся|лась|лось|лись)\b|"
    r"了|过|た(?:。|、|$|\s)|ました"
)
