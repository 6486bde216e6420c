"`python -m fa_nb` is the command `fa_nb` (nbs/23_command.ipynb)."
from fa_nb.cli import main

if __name__ == "__main__":
    main()
