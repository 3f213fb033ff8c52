"""From every library to every other, through bowstring: what goes over without a copy, and what does not and why."""
