"""How records are put into words: names, places, quantities and sentences, shared by advice and reporters."""
