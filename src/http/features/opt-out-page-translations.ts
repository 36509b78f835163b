/**
 * Texts of the page to opt out in one language. To add a language, add an entry to {@link OPT_OUT_WORDS}, under its tag
 * as browsers send it. `{account}` and `{word}` are filled in.
 */
export interface OptOutWords {
  readonly question: string;
  /** Sentence that names the sender. `{account}`: the handle, with its @. */
  readonly wrote: string;
  readonly promise: string;
  /** Label of the button by which the recipient wants no more messages. */
  readonly stop: string;
  /** Text above the button `untrack`, which says that clicks are recorded. */
  readonly tracked: string;
  readonly untrack: string;
  /** Text below the buttons, for readers who got the page forwarded by the recipient. */
  readonly forwarded: string;
  /** Heading and text after the button `stop` was pressed. */
  readonly stopped: string;
  readonly untracked: string;
  readonly recorded: string;
  /** Heading and text while nothing can be recorded, for example because the log is unreachable. */
  readonly notYet: string;
  readonly tryAgain: string;
  /** Heading and text for an unknown code. `{word}`: a word that the recipient may send as a reply instead. */
  readonly unknown: string;
  readonly reply: string;
}

/** The page's languages, by their tags. The first one is shown to browsers that ask for none of the others. */
export const OPT_OUT_WORDS: Readonly<Record<string, OptOutWords>> = {
  en: {
    question: "No more messages from us?",
    wrote: "{account} wrote to you on X",
    promise: "One tap, and we never write to you again. It takes effect at once.",
    stop: "No more messages",
    tracked: "The link in our message tells us that you clicked it. You may stop that, and still get messages.",
    untrack: "Do not record my clicks",
    forwarded: "Nothing happens unless you press a button. If this page was forwarded to you, please leave it alone.",
    stopped: "Done. We will not write to you again.",
    untracked: "Done. We no longer record your clicks.",
    recorded: "It is recorded. You may close this page.",
    notYet: "Not recorded yet",
    tryAgain: "We cannot save your wish right now. Please try again in a minute.",
    unknown: "This link leads to no one",
    reply:
      "It is incomplete, or the data of its recipient was erased. To get no more messages, reply “{word}” to our message.",
  },
  de: {
    question: "Keine Nachrichten mehr von uns?",
    wrote: "{account} hat Ihnen auf X geschrieben",
    promise: "Ein Fingertipp genügt, und wir schreiben Ihnen nie wieder. Das gilt sofort.",
    stop: "Keine Nachrichten mehr",
    tracked:
      "Der Link in unserer Nachricht verrät uns, dass Sie ihn geöffnet haben. Das können Sie beenden und trotzdem Nachrichten erhalten.",
    untrack: "Meine Klicks nicht aufzeichnen",
    forwarded:
      "Es geschieht nichts, solange Sie nichts antippen. Wurde Ihnen diese Seite weitergeleitet, schließen Sie sie bitte einfach.",
    stopped: "Erledigt. Wir schreiben Ihnen nicht mehr.",
    untracked: "Erledigt. Wir zeichnen Ihre Klicks nicht mehr auf.",
    recorded: "Es ist festgehalten. Sie können diese Seite schließen.",
    notYet: "Noch nicht festgehalten",
    tryAgain: "Wir können Ihren Wunsch gerade nicht speichern. Bitte versuchen Sie es in einer Minute noch einmal.",
    unknown: "Dieser Link gehört zu niemandem",
    reply:
      "Er ist unvollständig, oder die Daten seines Empfängers wurden gelöscht. Um keine Nachrichten mehr zu erhalten, antworten Sie auf unsere Nachricht mit „{word}“.",
  },
  fr: {
    question: "Ne plus recevoir de messages de notre part ?",
    wrote: "{account} vous a écrit sur X",
    promise: "Un seul appui, et nous ne vous écrirons plus jamais. L’effet est immédiat.",
    stop: "Plus de messages",
    tracked:
      "Le lien de notre message nous indique que vous l’avez ouvert. Vous pouvez y mettre fin et continuer à recevoir des messages.",
    untrack: "Ne pas enregistrer mes clics",
    forwarded:
      "Rien ne se passe tant que vous n’appuyez sur aucun bouton. Si cette page vous a été transférée, fermez-la simplement.",
    stopped: "C’est fait. Nous ne vous écrirons plus.",
    untracked: "C’est fait. Nous n’enregistrons plus vos clics.",
    recorded: "Votre choix est enregistré. Vous pouvez fermer cette page.",
    notYet: "Pas encore enregistré",
    tryAgain: "Nous ne pouvons pas enregistrer votre choix pour le moment. Veuillez réessayer dans une minute.",
    unknown: "Ce lien ne mène à personne",
    reply:
      "Il est incomplet, ou les données de son destinataire ont été effacées. Pour ne plus recevoir de messages, répondez « {word} » à notre message.",
  },
  es: {
    question: "¿No quiere más mensajes nuestros?",
    wrote: "{account} le escribió en X",
    promise: "Basta un toque y no volveremos a escribirle nunca. Surte efecto de inmediato.",
    stop: "No más mensajes",
    tracked:
      "El enlace de nuestro mensaje nos indica que usted lo abrió. Puede ponerle fin y seguir recibiendo mensajes.",
    untrack: "No registrar mis clics",
    forwarded: "No pasa nada si no pulsa ningún botón. Si le han reenviado esta página, simplemente ciérrela.",
    stopped: "Hecho. No volveremos a escribirle.",
    untracked: "Hecho. Ya no registramos sus clics.",
    recorded: "Ha quedado registrado. Puede cerrar esta página.",
    notYet: "Aún no se ha registrado",
    tryAgain: "Ahora mismo no podemos guardar su petición. Inténtelo de nuevo dentro de un minuto.",
    unknown: "Este enlace no lleva a nadie",
    reply:
      "Está incompleto, o se borraron los datos de su destinatario. Para no recibir más mensajes, responda «{word}» a nuestro mensaje.",
  },
  pt: {
    question: "Não quer receber mais mensagens nossas?",
    wrote: "{account} escreveu para você no X",
    promise: "Basta um toque e nunca mais escreveremos para você. Vale imediatamente.",
    stop: "Não receber mais mensagens",
    tracked:
      "O link da nossa mensagem nos informa que você o abriu. Você pode encerrar isso e continuar recebendo mensagens.",
    untrack: "Não registrar meus cliques",
    forwarded: "Nada acontece se você não tocar em um botão. Se esta página foi encaminhada a você, apenas feche-a.",
    stopped: "Pronto. Não escreveremos mais para você.",
    untracked: "Pronto. Não registramos mais seus cliques.",
    recorded: "Está registrado. Você pode fechar esta página.",
    notYet: "Ainda não registrado",
    tryAgain: "Não conseguimos salvar seu pedido agora. Tente de novo daqui a um minuto.",
    unknown: "Este link não leva a ninguém",
    reply:
      "Ele está incompleto, ou os dados do destinatário foram apagados. Para não receber mais mensagens, responda “{word}” à nossa mensagem.",
  },
  it: {
    question: "Non vuole più ricevere nostri messaggi?",
    wrote: "{account} le ha scritto su X",
    promise: "Basta un tocco e non le scriveremo mai più. Ha effetto immediato.",
    stop: "Nessun altro messaggio",
    tracked:
      "Il link nel nostro messaggio ci dice che lei lo ha aperto. Può interromperlo e continuare a ricevere messaggi.",
    untrack: "Non registrare i miei clic",
    forwarded: "Non succede nulla se non preme un pulsante. Se questa pagina le è stata inoltrata, la chiuda.",
    stopped: "Fatto. Non le scriveremo più.",
    untracked: "Fatto. Non registriamo più i suoi clic.",
    recorded: "La sua scelta è registrata. Può chiudere questa pagina.",
    notYet: "Non ancora registrato",
    tryAgain: "Al momento non possiamo salvare la sua richiesta. Riprovi tra un minuto.",
    unknown: "Questo link non porta a nessuno",
    reply:
      "È incompleto, oppure i dati del destinatario sono stati cancellati. Per non ricevere più messaggi, risponda «{word}» al nostro messaggio.",
  },
  nl: {
    question: "Geen berichten meer van ons?",
    wrote: "{account} heeft u op X geschreven",
    promise: "Eén tik, en wij schrijven u nooit meer. Het geldt meteen.",
    stop: "Geen berichten meer",
    tracked:
      "De link in ons bericht laat ons zien dat u hem hebt geopend. U kunt dat stoppen en toch berichten blijven krijgen.",
    untrack: "Mijn klikken niet vastleggen",
    forwarded:
      "Er gebeurt niets zolang u niet op een knop drukt. Is deze pagina naar u doorgestuurd, sluit haar dan gewoon.",
    stopped: "Klaar. Wij schrijven u niet meer.",
    untracked: "Klaar. Wij leggen uw klikken niet meer vast.",
    recorded: "Het is vastgelegd. U kunt deze pagina sluiten.",
    notYet: "Nog niet vastgelegd",
    tryAgain: "Wij kunnen uw wens nu niet opslaan. Probeer het over een minuut opnieuw.",
    unknown: "Deze link hoort bij niemand",
    reply:
      "Hij is onvolledig, of de gegevens van de ontvanger zijn gewist. Antwoord “{word}” op ons bericht om geen berichten meer te krijgen.",
  },
  pl: {
    question: "Nie chcesz więcej wiadomości od nas?",
    wrote: "Wiadomość na X od {account}",
    promise: "Jedno dotknięcie i nigdy więcej do Ciebie nie napiszemy. Działa od razu.",
    stop: "Nie chcę więcej wiadomości",
    tracked:
      "Link w naszej wiadomości mówi nam, że został przez Ciebie otwarty. Możesz to wyłączyć i nadal otrzymywać wiadomości.",
    untrack: "Nie zapisuj moich kliknięć",
    forwarded:
      "Nic się nie stanie, dopóki nie naciśniesz przycisku. Jeśli ktoś przesłał Ci tę stronę dalej, po prostu ją zamknij.",
    stopped: "Gotowe. Nie będziemy już do Ciebie pisać.",
    untracked: "Gotowe. Nie zapisujemy już Twoich kliknięć.",
    recorded: "Zapisaliśmy to. Możesz zamknąć tę stronę.",
    notYet: "Jeszcze nie zapisano",
    tryAgain: "Nie możemy teraz zapisać Twojej decyzji. Spróbuj ponownie za minutę.",
    unknown: "Ten link do nikogo nie prowadzi",
    reply:
      "Jest niepełny albo dane odbiorcy zostały usunięte. Aby nie otrzymywać więcej wiadomości, odpowiedz „{word}” na naszą wiadomość.",
  },
  ja: {
    question: "今後のメッセージを停止しますか？",
    wrote: "{account} が X であなたにメッセージを送りました",
    promise: "ボタンを一度押すだけで、今後一切メッセージをお送りしません。すぐに有効になります。",
    stop: "メッセージを停止する",
    tracked:
      "メッセージ内のリンクを開くと、そのことが私たちに伝わります。記録だけを止めて、メッセージを受け取り続けることもできます。",
    untrack: "クリックを記録しない",
    forwarded: "ボタンを押さない限り何も起こりません。このページが転送されてきた場合は、そのまま閉じてください。",
    stopped: "完了しました。今後メッセージはお送りしません。",
    untracked: "完了しました。今後クリックは記録しません。",
    recorded: "記録されました。このページを閉じてかまいません。",
    notYet: "まだ記録されていません",
    tryAgain: "現在、ご希望を保存できません。1分ほど待ってから、もう一度お試しください。",
    unknown: "このリンクは誰のものでもありません",
    reply:
      "リンクが不完全か、受信者のデータが消去されています。メッセージを停止するには、メッセージに「{word}」と返信してください。",
  },
};
