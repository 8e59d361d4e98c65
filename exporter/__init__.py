"""How close are this queue's jobs to missing their deadlines, in words that Prometheus can scrape?"""
