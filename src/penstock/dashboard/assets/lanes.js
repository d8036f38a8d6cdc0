// Lanes and the streams each reads, where the run has any.

import { byId } from "./dom.js";

export function drawLanes(newest) {
  byId("lanes").hidden = !(newest?.lanes?.length > 0);
}
