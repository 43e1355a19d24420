"""Portuguese."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Portuguese",
    stemmer="portuguese",
    endings=(("ões", "ão"), ("ães", "ão"), ("ens", "em"), ("uns", "um"), ("ins", "im"), ("oes", "ao")),
    intents={
        "troubleshoot": r"\b(?:erros?|falha|travou|não (?:funciona|inicia|carrega|abre))\b",
        "comparison": r"\bdiferenças? entre\b|\bcomparad[oa]s? com\b|\b(?:melhor|pior|mais rápido) (?:do )?que\b",
        "how-to": r"^como (?:posso|podemos|se|faço|fazemos|devo|\w+ar|\w+er|\w+ir)\b",
        "location": r"^onde (?:está|estão|fica|ficam|encontro|posso)\b|^em que (?:arquivo|pasta)\b",
        "explanation": r"^por ?qu[eê]\b",
    },
    stop_words="""
acerca agora alguns ali ambos antes ao aos apontar após aquela aquelas aquele aqueles aqui aquilo as atrás até
bem bom cada caminho cima com como comprido conhecido contra corrente da das de debaixo dentro depois desde
deve devem deverá diante direita diz dizer do dois dos ela elas ele eles em enquanto entre então era essa
essas esse esses esta estado estar estará estas estava este estes esteve estive estivemos estiveram estou está
estão eu fará faz fazer fazia fez fim foi fomos for fora foram fui iniciar inicio ir irá isso isto já lhe
ligado maioria maiorias mais mas me menos mesmo meu meus minha minhas muito muitos na nas nem no nos nossa
nossas nosso nossos novo num numa não nós onde os ou para parte pegar pela pelas pelo pelos pode poderá podia
por porque povo quais qual qualquer quando quanta quantas quanto quantos que quem quieto quê saber se segundo
sem ser seria seu seus sob sobre somente somos sou sua suas são só tal também te tem temos tempo tenho tentar
tentaram tente tentei ter teu teus teve tipo tive tivemos tiveram todos tu tua tuas têm um uma umas uns usa
usar valor veja ver você vocês vos à às é último
""",
)
