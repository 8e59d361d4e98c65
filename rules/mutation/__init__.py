"""Would a test notice if a rule were wrong? Make each rule wrong in every way we know, and see."""
