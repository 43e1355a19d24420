"""Spanish."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Spanish",
    stemmer="spanish",
    intents={
        "troubleshoot": r"\b(?:errore?s?|falla|fallo|se cae|no (?:funciona|arranca|inicia|carga|abre))\b",
        "comparison": r"\bdiferencias? entre\b|\bcomparad[oa]s? con\b|\b(?:mejor|peor|más rápido) que\b",
        "how-to": r"^¿?cómo (?:puedo|podemos|se|hago|hacemos|debo|\w+ar|\w+er|\w+ir)\b",
        "location": r"^¿?dónde (?:está|están|se|encuentro|puedo|queda)\b|^¿?en qué (?:archivo|carpeta)\b",
        "explanation": r"^¿?por qué\b",
    },
    stop_words="""
a además adónde afirmó agregó ahora ahí al algo alguna alguno algún ambos ante antes apenas aquel aqui aquí
arriba así atras aun aunque ayer añadió aún bajo bien buen buena buenas bueno buenos cada casi cerca cierta
cierto cinco como con contra cosas creo cual cuales cuando cuanto cuatro cuenta cuál cuáles cuándo cuánta
cuántas cuánto cuántos cómo da dado dan dar de debe deben debido decir dejó del demás dentro desde dice dicen
dicho dieron dijo dio donde dos dónde e el ella ellas ello ellos empleo en encima entre era eramos eran eras
eres es esa esas ese eso esos esta estaba estado estais estan estar estará estas este esto estos estoy estuvo
está están ex existe fin fue fuera fueron fui fuimos gran gueno ha haber habrá había habían hace haceis hacen
hacer haces hacia hago han hasta hay haya he hecho hemos hizo hoy hubo igual indicó ir junto la lado largo las
le les llegó lleva llevar lo los luego lugar manera mayor me mejor menos mi mio mis misma mismas mismo mismos
modo mucha muchas mucho muchos muy más mí mía mías mío míos nada nadie ni ningún no nos nueva nuevas nuevo
nuevos nunca o ocho os otra otras otro otros para parece parte partir pasada pasado pero pesar poca pocas poco
pocos podeis poder podria podrá podrán podría poner por porque primer propia propio pudo pueda puede pueden
puedo pues que quedó quien quiere quién quiénes qué sabe sabeis saben saber sabes salvo se sea sean según seis
ser será serán sería señaló si sido siendo siete sigue sin sino sobre sois sola solas solo solos somos son soy
su sus suya suyas suyo sí sólo tal también tan tanto te tendrá teneis tener tenga tengo tenido tenía ti tiempo
tiene tienen toda todas todo todos total tras trata través tres tu tus tuvo tuya tuyas tuyo tuyos tú u ultimo
un una unas uno unos usa usais usamos usan usar usas uso usted va vais valor vamos van varias varios vaya
veces ver verdad vez voy y ya yo él ésta éstas éste éstos última último
""",
)
