"""German."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="German",
    stemmer="german",
    linking=("", "s", "es", "n", "en", "er", "e"),
    intents={
        "troubleshoot": (
            r"\b(?:fehler\w*|absturz|stürzt|abgestürzt|kaputt|(?:geht|funktioniert|startet|klappt|läuft) nicht)\b"
        ),
        "comparison": (
            r"\bunterschiede? zwischen\b|\bim vergleich\b|\b(?:besser|schlechter|schneller|billiger) als\b|"
            r"\bvor- und nachteile\b"
        ),
        "how-to": r"^wie (?:kann|soll|sollte|muss|\w+) (?:ich|wir|man)\b|\banleitung (?:für|zum|zur)\b",
        "location": (
            r"^wo (?:ist|sind|liegt|liegen|steht|stehen|finde|finden|wird|werden)\b|^in welche[mr] (?:datei|"
            r"ordner)\b"
        ),
        "explanation": r"^(?:warum|weshalb|wieso)\b",
    },
    stop_words="""
aber alle allem allen aller alles als also am an ander andere anderm andern anders auch auf aus bei beim bin
bis bist da daher damit dann darum das dass dazu daß dein deine deinem deinen deiner deines dem den denn der
derer des dessen dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen
einer eines einig einige einmal er es etwa etwas euch euer eure eurem euren eurer eures für gab gegen gibt hab
habe haben hat hatte hatten hattet heißt hier hieß hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer
ihres im in indem ins ist ja jede jedem jeden jeder jedes jene jenem jenen jener jenes jetzt kann kannst kein
keine keinem keinen keiner keines können könnt könnte man manche mein meine meinem meinen meiner meines mich
mir mit muss musst musste muß mußt müssen müßt nach nein nicht nichts noch nun nur ob oder ohne sehr seid sein
seine seinem seinen seiner seines seit selbst sich sie sind so solche soll sollen sollst sollt sollte sonst
soweit sowie um und uns unser unsere unter viel vom von vor wann war waren warst warum was weil welche wem wen
wenn wer werde werden werdet wessen wie wieder wieso wieviel wieviele will wir wird wirst wo wodurch wofür
woher wohin wollen wollte womit woran worden worin wurde wurden würde würden zu zum zur zwar über
""",
)
