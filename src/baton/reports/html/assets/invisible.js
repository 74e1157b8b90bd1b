// First and last of each range of invisible characters, as in baton.model.visible.

export const INVISIBLE_RANGES = [
  ["0", "8"], ["e", "1b"], ["1f", "1f"], ["7f", "84"], ["86", "9f"], ["ad", "ad"], ["34f", "34f"],
  ["61c", "61c"], ["115f", "1160"], ["17b4", "17b5"], ["180b", "180f"], ["200b", "200b"],
  ["200e", "200f"], ["202a", "202e"], ["2060", "206f"], ["3164", "3164"], ["feff", "feff"],
  ["ffa0", "ffa0"], ["fff0", "fffb"], ["1d173", "1d17a"], ["e0000", "e0fff"], ["b", "d"], ["1c", "1e"],
  ["85", "85"], ["2028", "2029"],
];
