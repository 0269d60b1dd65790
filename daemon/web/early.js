// Runs before the other modules are loaded: the first question is on its way while they come.
import { ahead } from "./asks.js";

ahead();
