"""What is the gate, why, what runs, and what is asked of the person on call? A page that shows it and lets them act."""
