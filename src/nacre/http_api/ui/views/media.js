// Whether a media query holds, as it changes.

import { useEffect, useState } from "../vendor/htm-preact.js";

export function useMedia(query) {
  const [holds, setHolds] = useState(() => window.matchMedia(query).matches);
  useEffect(() => {
    const media = window.matchMedia(query);
    const changed = () => setHolds(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, [query]);
  return holds;
}
