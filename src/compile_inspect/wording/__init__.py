"""Text for records: names, locations, quantities and sentences, shared by advice and reporters."""
