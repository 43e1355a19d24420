"""Does a query ask for something to be done, rather than for something to be known?

A request ("book a table", "write to the landlord") never names the preferences and instructions that it must respect,
so no word and no meaning leads to them. The search brings them in when it sees one.
"""

from __future__ import annotations

import re

# A verb that begins a sentence.
_VERBS = (
    "book(?! (?:by|about|club|list|title|shop|store|on)\\b)|reserve|write|draft|compose|suggest|recommend|propose|"
    "generate|set up|put together|arrange|organi[sz]e|schedule|buy|get me|find (?:me|us|an?)|pick|choose|prepare|cook|"
    "bake|send|reply(?! times?\\b)|respond|remind|translate|summari[sz]e|refactor|implement|rewrite|proofread|give me|"
    "show me|tell me what to|help me|invite|sign (?:me|us) up|plot(?! (?:of|lines?|twists?)\\b)|compile a|menu for|"
    "gift for|present for|shopping (?:list|for)|let [\\w.]+(?: [\\w.]+)? know|"
    "ask [\\w.]+(?: [\\w.]+)? (?:for|to|if|about)|start (?:drafting|writing|planning|preparing)|"
    # German, French, Spanish
    "buche|reserviere|schreibe?|verfasse|entwirf|schlage?|empfiehl|erstelle|mache?|organisiere|"
    "kaufe|bestelle?|suche|finde|koche|backe|schicke?|sende|antworte|übersetze|"
    "bereite|hilf mir|gib mir|"
    "réserve[rz]?|écri[st]|rédige[rz]?|propose[rz]?|recommande[rz]?|suggère|suggérez|crée[rz]?|organise[rz]?|planifie[rz]?|"
    "achète[rz]?|trouve[rz]?|prépare[rz]?|envoie|envoyez|répond[sz]?|tradui[st]|aide[rz]?-moi|"
    "escribe|redacta|propón|sugiere|recomienda|organiza|planifica|planea|prepara|cocina|"
    "envía|responde|traduce|ayúdame"
)
# Verbs that are also nouns. As the first word of a keyword query ("build errors", "plane tickets") they ask for nothing
# to be done, so they count only with an object.
_NOUNS = (
    "build|fix|review|call|deploy|format|answer|pack|rent|register|make|create|put|add|plan|order|design|e-?mail|"
    "buch|kauf|such|koch|back|plane|commande[rz]?|cuisine[rz]?|reserva|crea|compra|pide|busca|manda"
)
_OBJECTS = (
    "an?|the|some|me|us|my|our|your|his|her|their|this|that|these|those|it|him|them|something|everyone|two|three|"
    "mir|uns|eine?[nmrs]?|de[nmrs]|die|das|meine?[nmrs]?|unsere?[nmrs]?|une?|les?|la|des|du|mon|ma|mes|notre|nos|unos?|"
    "unas?|el|los|las|mi|mis|nuestr[oa]s?|(?-i:[A-Z])[a-z]+(?:'s|,| (?:and|back|that|to|about|if)\\b)"
)
_BEGINS = re.compile(
    rf"\W*(?:(?:please|bitte|por favor|s['’]il te pla[iî]t|hey|ok|now|can you|could you|kannst du|"
    rf"könntest du|peux-tu|puedes|i need (?:you )?to|let['’]?s|lass uns)\W+)*"
    rf"(?:(?:{_VERBS})\b|(?:{_NOUNS}) (?:{_OBJECTS})(?!\w))",
    re.I,
)
_ADVICE = re.compile(
    r"\b(?:what|where|which|how|when)\b[^?]{0,40}\b(?:should|shall|could|can) (?:i|we)\b[^?]{0,12}\b"
    r"(?:cook|bake|eat|drink|order|buy|get|give|wear|bring|book|stay|go|take|write|say|tell|answer|reply|put|pick|choose|"
    r"watch|read|make)\b|\bwhat do (?:i|we) (?:answer|say|tell|reply|wear|bring)\b"
    r"|\bplease\b|\bbitte\b|\bpor favor\b|\bwrite (?:it|this|that|them) up\b"
    r"|\bwas (?:soll|sollen|könnte|können) (?:ich|wir)\b|\bque (?:dois|devrais|pourrais)-je\b"
    r"|\bqué (?:debería|puedo|podemos)\b",
    re.I,
)


def is_request(query: str) -> bool:
    """Whether the query asks for something to be done or for advice."""
    return _BEGINS.match(query) is not None or _ADVICE.search(query) is not None
