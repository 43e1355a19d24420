"""Dutch."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Dutch",
    stemmer="dutch",
    linking=("", "s", "e", "en", "n"),
    stop_words="""
aan af al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een eens en er
ge geen geweest haar had heb hebben heeft hem het hier hij hoe hoeveel hun iemand iets ik in is ja je kan kon
kunnen maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op over reeds te
tegen toch toen tot u uit uw van veel voor waar waarom wanneer want waren was wat we wel welk welke werd wezen
wie wij wil worden wordt zal ze zei zelf zich zij zijn zo zonder zou
""",
)
