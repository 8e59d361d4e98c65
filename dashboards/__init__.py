"""What must a person see to choose between admit, drain and roll back?"""
