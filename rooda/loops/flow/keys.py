"""Defines the settings that only flows have."""

from rooda.settings.types import FLAG, RUNS, SECONDS, Key, whole, word

OWN = {
    "sensors": Key(
        word("agent", "native"),
        "what runs the sensor commands: an agent, or rooda itself",
        default="agent",
        trust=RUNS,
    ),
    "sensor_timeout": Key(SECONDS, "seconds that one sensor command may take; 0 = no limit", default=0),
    "stuck_after": Key(
        whole(0),
        "end a node after this many iterations in a row in which no file and no sensor reading changed; 0 = never",
        default=5,
    ),
    "no_verify": Key(
        FLAG, "skip git's pre-commit and commit-msg hooks for the run's commits", default=False, trust=RUNS
    ),
}
