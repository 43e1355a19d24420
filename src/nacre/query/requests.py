"""Does a query ask for something to be done, rather than for something to be known?

A request ("book a table", "write to the landlord") never names the preferences and instructions that it must respect,
so no word and no meaning leads to them. The search brings them in when it sees one.
"""

from __future__ import annotations

import re

# A verb that begins a sentence. Words that are also common nouns at the beginning of a keyword query ("plan",
# "order", "report") count only with an object after them.
_VERBS = (
    "book|reserve|write|draft|compose|suggest|recommend|propose|generate|create|make|set up|arrange|organi[sz]e|"
    "schedule|"
    "buy|get me|find me|find us|find a|find an|pick|choose|prepare|cook|bake|send|reply|answer|respond|remind|add|put|"
    "translate|summari[sz]e|format|refactor|implement|build|deploy|fix|rewrite|review|proofread|give me|show me|"
    "tell me what to|help me|plan (?:a|an|the|my|our|us|for)|order (?:a|an|the|some|me|us|my|our)|"
    "design (?:a|an|the|my|our)|pack|invite|call|e-?mail (?:the|my|our|him|her|them)|rent|register|sign (?:me|us) up|"
    "compile a|menu for|gift for|present for|shopping (?:list|for)|let [\\w.]+(?: [\\w.]+)? know|"
    "ask [\\w.]+(?: [\\w.]+)? (?:for|to|if|about)|start (?:drafting|writing|planning|preparing)|plot|"
    # German, French, Spanish
    "buche|buch|reserviere|schreib(?:e)?|verfasse|entwirf|schlag(?:e)?|empfiehl|erstelle|mach(?:e)?|organisiere|plane|"
    "kauf(?:e)?|bestell(?:e)?|such(?:e)?|finde|koch(?:e)?|back(?:e)?|schick(?:e)?|sende|antworte|übersetze|"
    "bereite|hilf mir|gib mir|"
    "réserve[rz]?|écri[st]|rédige[rz]?|propose[rz]?|recommande[rz]?|suggère|suggérez|crée[rz]?|organise[rz]?|planifie[rz]?|"
    "achète[rz]?|commande[rz]?|trouve[rz]?|prépare[rz]?|cuisine[rz]?|envoie|envoyez|répond[sz]?|tradui[st]|aide[rz]?-moi|"
    "reserva|escribe|redacta|propón|sugiere|recomienda|crea|organiza|planifica|planea|compra|pide|busca|prepara|cocina|"
    "envía|manda|responde|traduce|ayúdame"
)
_BEGINS = re.compile(
    rf"\W*(?:(?:please|bitte|por favor|s['’]il te pla[iî]t|hey|ok|now|can you|could you|kannst du|"
    rf"könntest du|peux-tu|puedes|i need (?:you )?to|let['’]?s|lass uns)\W+)*(?:{_VERBS})\b",
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
