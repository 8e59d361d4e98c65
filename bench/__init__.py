"""How fast is the queue, beside a bare Redis client and beside what people would take instead?"""
