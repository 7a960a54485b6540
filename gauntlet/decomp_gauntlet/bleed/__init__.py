"""`decomp-router gauntlet bleed`: does what one request holds, or only that it runs, show in another's answer?"""
