"""English stop words.

They are indexed, matched in phrases, and matched where a query has no other words. But a memory that has only stop
words in common with a query is no match, however rare they are in the store.
"""

from __future__ import annotations

_WORDS = """
a about above after again against all also am an and any are arent as at be because been before being below between
both but by can cannot cant could couldnt d did didnt do does doesnt doing done dont down during each either else ever
every few for from further get gets getting give given gives go goes going got had hadnt has hasnt have havent having he
hed hell her here heres hers herself hes him himself his how hows i id if ill im in into is isnt it itd itll its itself
ive just let lets ll m many may me might more most much must mustnt my myself neither no nor not now of off on once
only or other others ought our ours ourselves out over own re s same shall shant she shed shell shes should shouldnt so
some such t tell than that thatll thats the their theirs them themselves then there theres these they theyd theyll
theyre theyve this those through to too under until up upon us ve very was wasnt we wed well were werent weve what
whats when whens where wheres whether which while who whom whos whose why whys will with within without wont would
wouldnt yes yet you youd youll your youre yours yourself yourselves youve
"""
WORDS = frozenset(_WORDS.split())
